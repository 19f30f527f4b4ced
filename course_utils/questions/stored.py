"""What the output of a question holds, so that it can be answered before anything has run.

A notebook keeps it in the metadata of ``MIMETYPE``, packed so that nobody reads an answer by
accident. There JupyterLab's renderer (see ``jupyter/labextension``) and the static site find it. A
learner's answers never stand in it.
"""

import base64
import json
import zlib
from collections.abc import Mapping

MIMETYPE = "application/vnd.attention-course.question+json"
MARK = {"version": 1}  # what stands under ``data``, which nbval compares


def pack(content: Mapping) -> str:
    """Questions, choices and sentences as a string of ASCII: JSON, deflated, in base64."""
    plain = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(plain.encode(), level=9)).decode()


def unpack(packed: str) -> dict:
    """What was packed."""
    return json.loads(zlib.decompress(base64.b64decode(packed)))
