"""All settings, composed of the settings of each room."""

from typing import Annotated

from pydantic import AfterValidator, Field

from duckflow.agent.settings import AgentSettings
from duckflow.code.settings import CodeSettings, LspSettings
from duckflow.extensions.places import HookSettings
from duckflow.i18n.words import is_language, languages
from duckflow.llm.settings import LlmSettings, LocalSettings
from duckflow.memory.settings import MemorySettings
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.prompts.settings import PromptSettings
from duckflow.proof.settings import ProofSettings
from duckflow.safety.risk import SafetySettings
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.safety.undo.settings import UndoSettings
from duckflow.state.data import Section
from duckflow.tools.settings import FileSettings, McpSettings, ShellSettings, WebSettings
from duckflow.ui.settings import UiSettings


def _spoken(language: str) -> str:
    if language and not is_language(language):
        from pydantic_core import PydanticCustomError

        raise PydanticCustomError("enum", "unknown language", {"expected": ", ".join(languages())})
    return language


class PluginSettings(Section):
    """Packages that add tools, commands, policies or wires."""

    off: tuple[str, ...] = ()
    """Plugins or packages that stay off; `*` means all."""


class Settings(Section):
    """All settings. Every default can be overridden; `load` tells where a value came from."""

    language: Annotated[str, AfterValidator(_spoken)] = ""
    """The code of the language, which names a folder in i18n. Empty means the language of the locale."""
    llm: LlmSettings = Field(default_factory=LlmSettings.model_construct)
    local: LocalSettings = Field(default_factory=LocalSettings.model_construct)
    pacemaker: PacemakerSettings = Field(default_factory=PacemakerSettings.model_construct)
    agent: AgentSettings = Field(default_factory=AgentSettings.model_construct)
    safety: SafetySettings = Field(default_factory=SafetySettings.model_construct)
    memory: MemorySettings = Field(default_factory=MemorySettings.model_construct)
    prompts: PromptSettings = Field(default_factory=PromptSettings.model_construct)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings.model_construct)
    shell: ShellSettings = Field(default_factory=ShellSettings.model_construct)
    undo: UndoSettings = Field(default_factory=UndoSettings.model_construct)
    proof: ProofSettings = Field(default_factory=ProofSettings.model_construct)
    hooks: HookSettings = Field(default_factory=HookSettings.model_construct)
    files: FileSettings = Field(default_factory=FileSettings.model_construct)
    code: CodeSettings = Field(default_factory=CodeSettings.model_construct)
    lsp: LspSettings = Field(default_factory=LspSettings.model_construct)
    web: WebSettings = Field(default_factory=WebSettings.model_construct)
    mcp: McpSettings = Field(default_factory=McpSettings.model_construct)
    plugins: PluginSettings = Field(default_factory=PluginSettings.model_construct)
    ui: UiSettings = Field(default_factory=UiSettings.model_construct)
    transitions: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Moves between phases of the work, in addition to the built-in moves, each with its reason. An empty reason
    removes a move."""
