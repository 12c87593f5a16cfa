"""Settings of the shell."""

from pydantic import Field

from duckflow.state.noun import Section


class ShellSettings(Section):
    """How long a command may take, how much of the machine, and how much of what it prints is kept."""

    timeout_seconds: int = Field(default=120, ge=1)
    """When the model does not say."""
    longest_seconds: int = Field(default=3600, ge=1)
    """More is never granted; servers run in the background."""
    head_characters: int = Field(default=6000, ge=0)
    tail_characters: int = Field(default=14_000, ge=0)
    cause_characters: int = Field(default=4000, ge=0)
    """Of what is printed, the beginning and the end reach the model; of what failed, also the lines that say why."""
    first_output_seconds: float = Field(default=1.5, ge=0)
    """How long to look at a background command before going on."""
    max_processes: int = Field(default=2000, ge=1)
    max_memory_mib: int = Field(default=0, ge=0)
    """Of all processes of a command together; 0: nine tenths of the machine's."""
    max_file_mib: int = Field(default=51_200, ge=1)
    """No file that a command writes grows larger."""
    min_free_mib: int = Field(default=256, ge=0)
    """A command that leaves less free on the disk of the work folder, or of its temporary files, is ended."""
    max_temporary_mib: int = Field(default=20_480, ge=1)
    """A command that fills /tmp with more is ended."""
    background_jobs: int = Field(default=8, ge=0)
    environment: tuple[str, ...] = ()
    """Further variables that commands may see, `*` for any ending. What looks like a secret must be named in full."""
    set_environment: dict[str, str] = Field(default_factory=dict)
    """Variables that every command gets."""
