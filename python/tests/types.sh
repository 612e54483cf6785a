#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks the types of the package: python/tests/types.sh PYTHON
#
# mypy and pyright check typed.py and the programs of docs/python.md without GStreamer, strictly, against the package of
# PYTHON. The checkers come from the Python Package Index, to the user's cache folder (NMSFILTER_CACHE).
set -euo pipefail
tests=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
tools=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}/python-types-2.4.1-1.40.2
[ -x "$tools/bin/basedpyright" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet mypy==2.4.1 basedpyright==1.40.2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$tests/typed.py" "$folder"
python3 - "$folder" "$tests/../../docs/python.md" <<'END'
import pathlib, re, sys

programs = re.findall(r"```python\n(.*?)```", pathlib.Path(sys.argv[2]).read_text(), re.DOTALL)
programs = [text for text in programs if "import " in text and "import gi" not in text]
assert len(programs) == 2, "docs/python.md has other programs"
for number, text in enumerate(programs):
    pathlib.Path(sys.argv[1], f"program{number}.py").write_text(text)
END
cd "$folder"
echo '{"typeCheckingMode": "strict", "reportUnnecessaryTypeIgnoreComment": true, "enableTypeIgnoreComments": false}' >pyrightconfig.json
"$tools/bin/mypy" --show-traceback --strict --python-executable "$1" ./*.py
"$tools/bin/basedpyright" --pythonpath "$1" ./*.py
