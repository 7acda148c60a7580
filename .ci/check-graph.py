"""Checks that each name of a queue's jobs stands in the picture that Graphviz has drawn as it was given; see .ci/formats."""

import json
import sys
import xml.etree.ElementTree as XML

folder = sys.argv[1]
names = json.load(open(f"{folder}/names.json"))
svg = "{http://www.w3.org/2000/svg}"
labels = {}
for group in XML.parse(f"{folder}/graph.svg").iter(f"{svg}g"):
    if group.get("class") == "node":
        lines = [(text.text or "").replace("\u00a0", " ") for text in group.iter(f"{svg}text")]
        labels[group.find(f"{svg}title").text] = "\n".join(lines)
for number, name in enumerate(names):
    label = labels[f"j{number}"]
    assert label.startswith(f"'{name}'\nwaits "), f"{name!r} is drawn as {label!r}"
assert len(labels) == len(names) + 1, len(labels)
print(f"Graphviz draws the names of {len(names)} jobs as they are.")
