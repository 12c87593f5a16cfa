"""Judges shell commands before they run: `safe` (only reads), `ask` or `dangerous`. Begin with `judge`.

`parse` turns a text into calls. `words` and `handed_over` find everything else that a call runs. `reader_programs` and
`dangers` are tables; `reading_doubts`, `services` and `project_tools` hold rules that a table cannot express. `paths`
tells where a path leads. Nothing is evaluated that a shell would evaluate: before a command with a word that is not
literal, the user is asked."""
