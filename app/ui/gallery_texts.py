"""What is said in the made-up conversations."""

from __future__ import annotations

SPLIT = """Each computer holds a run of layers. For every word, a few kilobytes travel once round: \
your computer embeds the last word and runs layers 1–26, heron runs 27–40, and the result comes back to be \
turned into the next word.

```python
def lap(hidden):
    hidden = otter.run(hidden)      # layers 1–26, 14.9 ms
    hidden = heron.run(hidden)      # layers 27–40, 4.3 ms
    return otter.next_word(hidden)
```
"""
HEAVIER = "They weigh the same: a kilogram is a kilogram, whether it is feathers or lead."
THOUGHTS = """The question sounds like the old riddle. A kilogram of feathers against a kilogram of lead: equal mass.
Buoyancy would make the feathers read a little lighter on a scale, but the mass is the same."""
EVERYTHING = """# A heading

A paragraph with **bold**, *slanted* and `inline code`, and a [link](https://example.org).

## Lists

1. First, open a room.
2. Then start a model:
   - each device loads its layers,
   - nobody loads all of them.
3. Ask.

| Device | Layers | ms a word |
| --- | --- | --- |
| otter | 1–26 | 14.9 |
| heron | 27–40 | 4.3 |

> A quotation says something another person said.

```rust
fn main() {
    let words = vec!["pool", "your", "devices"];
    let very_long_line = words.iter().map(|word| word.len()).sum::<usize>() + words.len() * words.capacity() + 1;
    println!("{}", words.join(" ")); // one line
}
```

After the code the text goes on, with a word that is long: Donaudampfschifffahrtselektrizitätenhauptbetriebswerk.
"""
FOREIGN_QUESTION = "日本語で挨拶してください 😀"
FOREIGN = """こんにちは、皆さん。**部屋**へようこそ 🎉

Zażółć gęślą jaźń. Привет, мир. Γειά σου Κόσμε. <script>alert("no")</script>"""
