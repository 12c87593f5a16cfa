"""The fence around a whole file."""

import pytest

from duckflow.tools.files.write_file import without_fence


@pytest.mark.parametrize(
    ("content", "path", "expected"),
    [
        ("```python\nx = 1\n```", "a.py", "x = 1\n"),
        ("\n\n```\nx = 1\n\n```\n\n", "a.py", "x = 1\n\n"),
        ("````\n```\nx\n```\n````", "a.txt", "```\nx\n```\n"),
        ("```markdown\n# T\n```sh\nls\n```\nend\n```", "README.md", "# T\n```sh\nls\n```\nend\n"),
        ("```\n```", "a.py", ""),
        ("x = 1\n", "a.py", "x = 1\n"),
        ("```sh\nls\n```\n", "README.md", "```sh\nls\n```\n"),
        ("```sh\nls\n```\nand\n```sh\ncd\n```\n", "a.txt", "```sh\nls\n```\nand\n```sh\ncd\n```\n"),
        ("Here:\n```\nx\n```", "a.py", "Here:\n```\nx\n```"),
        ("```python\nx = 1", "a.py", "```python\nx = 1"),
        ("", "a.py", ""),
        ("`x`", "a.py", "`x`"),
    ],
)
def test_a_fence_is_removed_only_when_it_is_around_everything(content: str, path: str, expected: str) -> None:
    assert without_fence(content, path) == expected
