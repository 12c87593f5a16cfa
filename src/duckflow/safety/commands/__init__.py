"""Judges shell commands before they run: `safe` (only reads), `ask` or `dangerous`. Begin with `judge`.

`parse` turns a text into calls. `words` and `handed_over` find everything else that a call runs. `readers` and
`dangers` are tables; `reading`, `services` and `project_tools` hold rules that a table cannot express. `paths` tells
inside from outside. Nothing is evaluated that a shell would evaluate: a word that is not literal asks."""
