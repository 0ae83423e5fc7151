"""Which words of JSON Schema hold an answer here, and which cannot (spec: A-063, A-064; drafts 4 to 2020-12).

===================================================  =====================================================
Held                                                 How
===================================================  =====================================================
type, enum, const                                    by the compiler; a list of types too
properties, required, additionalProperties           properties come in the schema's order
patternProperties, minProperties, maxProperties      by the compiler where it can count, else refused
items, prefixItems, minItems, maxItems               a list under ``items`` is read as ``prefixItems``
minLength, maxLength, pattern, format                patterns are found anywhere in a text; known formats only
minimum, maximum, exclusive…, multipleOf             by the compiler
allOf, anyOf, $ref, $anchor                          references stay inside the schema, and may recur
oneOf                                                where no value can fit two options, as ``anyOf``
not                                                  with a schema that allows everything: allows nothing
propertyNames                                        where it says no more than that names are text
unevaluatedProperties, unevaluatedItems              beside no applicator, as additionalProperties or items
uniqueItems                                          bounds the length of a list of enumerated values only
everything in ``REFUSED``                            refused by name before the model runs
any other word                                       an annotation, as the standard has it
===================================================  =====================================================

Left alone, the compiler refuses what it does not know of the standard, takes a schema of unknown words for
"anything", and looks ``$schema`` up; so it is only given what is listed as held.
"""

from __future__ import annotations

MOST_CHARS = 32_000
MOST_NODES = 10_000
MOST_VALUES = 1_000
MOST_ANY = 64
MOST_ALL = 16
MOST_DEPTH = 32

TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
SCHEMA_LISTS = {"allOf": MOST_ALL, "anyOf": MOST_ANY, "oneOf": MOST_ANY, "prefixItems": MOST_VALUES}
SCHEMA_MAPS = frozenset({"properties", "patternProperties"})
FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"},
)
REFUSED = frozenset(
    {
        "not", "if", "contains", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies",
        "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", "extends", "disallow",
        "divisibleBy",
    }
)  # fmt: skip
