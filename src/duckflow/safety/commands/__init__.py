"""Shell commands, judged before they run: `safe` (only reads), `ask` or `dangerous`. Begin with `judge`.

`parse` turns a text into calls whose words are literal or not; `wrappers` and `handed_over` find what else it runs;
`readers` is the table of what only reads, `reading` holds a call against it; `dangers` is the table of what destroys,
with `deleting`, `services` and `git` for what a table cannot say; `paths` tells inside from outside.
Nothing is worked out that a shell would work out: what is not literal asks."""
