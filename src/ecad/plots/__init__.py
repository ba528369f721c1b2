"""Report -> pictures: one self-contained page, one figure.

`page` writes an HTML file that needs nothing else: no script, no font, no network. `figure` gives matplotlib's own
object, to be shown or changed. Both draw the same three things: readings with what was expected of them, their p-values
(strange is up), and the network.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; each also has a shape of its own.

`pages` and `figures` are what people ask for; `document` and `listing` belong to the page alone. `sensor` and `network`
draw, on what `canvas` gives: only there is matplotlib imported. `judged` says what is drawn, `choice` which part of it,
`marks` how it looks, and `words` how it is told.
"""

from __future__ import annotations

from .figures import figure, save_picture
from .pages import page

__all__ = ["figure", "page", "save_picture"]
