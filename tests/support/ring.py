"""The protocol between the recorder and its reader, as far as tests speak it themselves."""
import os
import re


def ring_version():
    """The version that this source tree speaks, as text."""
    with open(os.path.join(os.environ["OPWATCH_SRC"], "src/wire/own/ring.h"), encoding="utf8") as header:
        return re.search(r"#define RING_VERSION (\d+)u", header.read())[1]
