from duckflow.api import AsyncDuckflow as AsyncDuckflow
from duckflow.api import Duckflow as Duckflow
from duckflow.state.question import Question as Question
from duckflow.state.turn_summary import TurnSummary as TurnSummary

__version__: str
DEFAULT_LANGUAGE: str
