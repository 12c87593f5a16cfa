from duckflow.api import AsyncDuckflow as AsyncDuckflow
from duckflow.api import Duckflow as Duckflow

__version__: str
DEFAULT_LANGUAGE: str
