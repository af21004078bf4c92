"""The stand-in is as loosely typed as what it stands for."""
from typing import Any

def __getattr__(name: str) -> Any: ...
