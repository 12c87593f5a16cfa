"""Settings of the shell."""

from pydantic import Field

from duckflow.state.data import Section


class ShellSettings(Section):
    """Limits on the time of a command, its share of the machine, and how much of its output is kept."""

    timeout_seconds: int = Field(default=120, ge=1)
    """Time limit where the model gives none."""
    longest_seconds: int = Field(default=3600, ge=1)
    """The largest time limit that is ever granted; servers run in the background."""
    head_characters: int = Field(default=6000, ge=0)
    tail_characters: int = Field(default=14_000, ge=0)
    cause_characters: int = Field(default=4000, ge=0)
    """The beginning and the end of an output reach the model; of a command that failed, also the lines that say why."""
    first_output_seconds: float = Field(default=1.5, ge=0)
    """Seconds to watch a background command before going on."""
    max_processes: int = Field(default=2000, ge=1)
    max_memory_mib: int = Field(default=0, ge=0)
    """Memory of all processes of a command together; 0 means nine tenths of the machine's."""
    max_file_mib: int = Field(default=51_200, ge=1)
    """Largest size of a file that a command writes."""
    min_free_mib: int = Field(default=256, ge=0)
    """Free space below which a command is ended, on the disk of the work folder and of its temporary files."""
    max_temporary_mib: int = Field(default=20_480, ge=1)
    """Size of /tmp above which a command is ended."""
    background_jobs: int = Field(default=8, ge=0)
    environment: tuple[str, ...] = ()
    """Further variables that commands may see; `*` stands for any ending. A name that looks like a secret must be given
    in full."""
    set_environment: dict[str, str] = Field(default_factory=dict)
    """Variables that every command gets."""
