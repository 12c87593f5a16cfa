"""Shell commands, judged before they run: `safe` (only reads), `ask` or `dangerous`. Begin with `judge`.

`parse` makes calls of a text; `wrappers` and `handed_over` find what else it runs; `readers` and `dangers` are tables,
`reading`, `deleting`, `services` and `git` say what these cannot; `paths` tells inside from outside.
Nothing is worked out that a shell would work out: what is not literal asks."""
