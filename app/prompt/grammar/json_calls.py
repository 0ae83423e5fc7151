"""A call as one JSON object between the tool tags, the name before the arguments (spec: rooms §18.5)."""

from __future__ import annotations

import json

from app.prompt.grammar.compiling import json_rule
from app.prompt.grammar.schema import Schema


def json_call(rule: str, name: str, schema: Schema) -> list[str]:
    """Grammar lines; ``rule`` is everything between the tags."""
    head = json.dumps(f'\n{{"name": {json.dumps(name)}, "arguments": ')
    return [f'{rule}: {head} {rule}_args "}}\\n"', f"{rule}_args: {json_rule(schema, schema.root)}"]
