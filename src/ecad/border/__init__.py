"""data of any kind -> what a panel is made of: the rooms behind `ecad.panel`, where data-frame libraries are spoken.

In the order of use: `options` says how to read, `sources` opens, `given` takes apart (`timeline` finds times, `stamps`
reads them, `cells` reads numbers), `utc` and `grid` put every reading on its tick, `places` reads positions and edges,
and `frames` gives back. Below them all lie `clock`, `names`, `scalars` and `arrays`. No room knows what a panel is.
"""
