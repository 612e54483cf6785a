#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""documents.py BUILD [--python PYTHON] [--versioned]: runs the commands and programs in the documents, as a user would.

BUILD is cargo's folder with the plugins, the C libraries and smart-camera, such as target/debug. With PYTHON, only the
Python programs are run, with this interpreter, which must have the wheel and NumPy. Inputs are from NMSFILTER_TEST_DATA
(default: ../shared), and get the names that the documents use.

Relative links must lead to a file and, in a document, to a heading.

A block of sh is a script that runs in a folder of its own. Commands in NOT_RUN are left out, and parts in INSTEAD are
replaced: cameras and windows. Blocks of c are compiled and run. A command fails if its exit status is not 0, or if a
file that it writes (filesink location=) is empty. A command with an element that only some versions of GStreamer have
runs only if the element is available; with --versioned, only such commands run.
"""
import argparse
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

PROJECT = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(os.environ.get("NMSFILTER_TEST_DATA", PROJECT.parent / "shared")).resolve()

# Commands that are not run, each with the reason.
NOT_RUN = {
    r"\./pipelines/demo\.sh": "installs packages and builds; tests/run.sh runs its pipeline",
    r"(\./)?tests/run\.sh": "is what runs this",
    r".*\bclasses\.onnx": "needs a classifier; tests/nmsfilter/classifier.rs has one",
    r"python3 -m venv|.*\bpip install|(sudo )?apt(-get)? ": "installs packages",
    r"curl |wget ": "needs the internet",
    r"\. onnx/bin/activate": "ONNX Runtime is found by ORT_DYLIB_PATH",
    r"meson |sudo meson ": "tests/meson.sh runs them",
    r"cargo (build|fetch) ": "other steps of tests/run.sh build and test",
    r"dpkg-buildpackage |docker ": "tests/packages, and packaging/README.md",
    r".*ray/bin/": "tests/archive runs it on a cluster",
    r"python -m nmsfilter": "python/tests/run.sh runs it where the wheel is installed",
    r"yolo/bin/yolo ": "needs ultralytics",
    r".*\b(nvinfer|nvstreammux|deepstream-)": "needs DeepStream; tests/nvidia",
    r".*(detect-camera|/dev/video|rtspsrc)": "needs a camera",
    r"cc -shared .*no_objects": "tests/deepstream compiles it",
    r"tests/deepstream/|LD_LIBRARY_PATH=|kernels/|folder=": "tests of their own",
    r"\.\.\. ": "is a part of a command",
}

# Replacements for a machine that has no camera and no display.
INSTEAD = {
    r"\bautovideosink\b": "fakesink",
    r"\bv4l2src\b": "videotestsrc num-buffers=3",
    r"cargo run --release -p smart-camera --": "$BUILD/smart-camera",
    r"\bprovider=cuda\b": "provider=cpu",
    r"num-buffers=600\b": "num-buffers=3",
    r"--seconds 60\b": "--seconds 3",
    r"\bport=5000\b": "port=$TCP_PORT",
    r"mosquitto_pub -h 127\.0\.0\.1": "mosquitto_pub -h 127.0.0.1 -p $MQTT_PORT",
}

# Names that the documents use for inputs.
INPUTS = {
    "street.jpg": "images/bus.jpg",
    "people.jpg": "images/crowd_selfie.jpg",
    "crowd.jpg": "images/crowd_selfie.jpg",
    "yolov8n.onnx": "models/yolov8n_int8_640.onnx",
    "yolov8n.onnx.modelinfo": "models/yolov8n_int8_640.onnx.modelinfo",
    "yolov8n-seg.onnx": "models2026/models/yolov8n-seg_int8.onnx",
    "version-RFB-640.onnx": "models/version-RFB-640.onnx",
}


def documents():
    found = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("*/README.md")]
    found += PROJECT.glob("examples/*/README.md")
    return sorted(path for path in found if path.parent.name not in ("benches", "gpu", "fuzz"))


def without_blocks(path):
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """The names of a document's headings in links, and of its anchors."""
    text = without_blocks(path)
    headings = (re.sub(r"\]\([^)]*\)|[^\w\- ]", "", heading) for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE))
    return {heading.lower().replace(" ", "-") for heading in headings} | set(re.findall(r'<a name="(.*?)"', text))


def broken_links():
    """Yields each relative link of a document that leads nowhere."""
    for path in [*documents(), PROJECT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_blocks(path)):
            if re.match(r"\w+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists() or anchor and anchor not in anchors(target):
                yield f"{path.relative_to(PROJECT)}: {link}"


def blocks(path):
    """Yields the fenced blocks of a document: language, number of the first line, and text."""
    language, first, lines, margin = None, 0, [], ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = re.match(r"( *)```(\w*)$", line)
        if fence and language is None:
            margin, language, first, lines = fence[1], fence[2], number + 1, []
        elif fence:
            yield language, first, "\n".join(lines)
            language = None
        elif language is not None:
            lines.append(line.removeprefix(margin))


def commands(text):
    """Returns the commands of a script. A line that ends in a backslash continues on the next line."""
    return [command for command in re.sub(r"\\\n", "", text).split("\n") if command.strip()]


def has_element(name):
    inspect = ["gst-inspect-1.0", "--exists", name]
    return subprocess.run(inspect, capture_output=True).returncode == 0


# Elements in the documents that only some versions of GStreamer contain.
VERSIONED = ["onnxinference", "tensordecodebin", "relationmeta2onvifmeta", "ioutracker", "analyticscombiner"]


def tcp_server():
    """Starts a server that reads everything that clients send. Returns its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            with server.accept()[0] as client:
                while client.recv(65536):
                    pass

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def mqtt_broker():
    """Starts Mosquitto. Returns the process and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        return None, port
    return subprocess.Popen([program, "-p", str(port)], stderr=subprocess.DEVNULL), port


class Runner:
    def __init__(self, build, python, versioned):
        self.build, self.python, self.versioned = build, python, versioned
        self.unused = set(NOT_RUN)
        # A file of five frames, whose format decodebin detects.
        self.video = pathlib.Path(tempfile.mkdtemp(prefix="documents-")) / "street.mp4"
        make = f"filesrc location={DATA}/data/images/bus.jpg ! jpegdec ! imagefreeze num-buffers=5 ! jpegenc ! avimux"
        subprocess.run(f"gst-launch-1.0 -q {make} ! filesink location={self.video}".split(), check=True)
        # C programs look for the library by this name.
        libraries = self.video.parent
        (libraries / "libnmsfilter.so.0").symlink_to(build / "libnmsfilter.so")
        self.ran, self.failed, self.left_out = 0, 0, {}
        self.environment = {
            **os.environ,
            "BUILD": str(build),
            "GST_PLUGIN_PATH": ":".join(filter(None, [str(build), os.environ.get("GST_PLUGIN_PATH")])),
            "LD_LIBRARY_PATH": str(libraries),
            "TCP_PORT": str(tcp_server()),
        }
        self.broker, port = mqtt_broker()
        self.environment["MQTT_PORT"] = str(port)

    def folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="documents-"))
        for name in ("pipelines", "tests", "examples", "docs"):
            (folder / name).symlink_to(PROJECT / name)
        (folder / "target").mkdir()
        (folder / "target/release").symlink_to(self.build)
        for name, data in INPUTS.items():
            (folder / name).symlink_to(DATA / "data" / data)
        for name in ("street.mp4", "one.mp4", "two.mp4"):
            (folder / name).symlink_to(self.video)
        (folder / "coco.txt").write_text("person\nbicycle\ncar\n")
        return folder

    def is_run(self, command):
        for pattern, reason in NOT_RUN.items():
            if re.match(pattern, command):
                self.unused.discard(pattern)
                self.left_out[command.split("#")[0].strip()] = reason
                return False
        named = [element for element in VERSIONED if re.search(rf"\b{element}\b", command)]
        for element in named:
            if not has_element(element):
                self.left_out[command] = f"needs {element}"
                return False
        return bool(named) or not self.versioned or command.startswith("export ")

    def script(self, text):
        """Returns those commands in a block of sh that are run."""
        run = []
        for command in filter(self.is_run, commands(text)):
            for pattern, replacement in INSTEAD.items():
                command = re.sub(pattern, replacement, command)
            run.append(command)
        return "\n".join(run)

    def run(self, name, command, folder, text):
        self.ran += 1
        try:
            ended = subprocess.run(
                command, cwd=folder, env=self.environment, timeout=120, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
            # An exception in a callback does not end a program, so the output is searched for tracebacks.
            is_failure = ended.returncode or "Traceback" in ended.stdout
            error = f"exit status {ended.returncode}\n{ended.stdout}" if is_failure else ""
        except subprocess.TimeoutExpired as expired:
            error = f"did not end\n{expired.stdout}"
        for file in re.findall(r"filesink location=(\S+)", text):
            written = folder / file
            if not error and not (written.is_file() and written.stat().st_size):
                error = f"{file} is missing or empty"
        self.failed += bool(error)
        print(f"{'FAILED' if error else 'ok'}: {name}", *([text, error] if error else []), sep="\n", flush=True)

    def block(self, name, language, text):
        folder = self.folder()
        try:
            if self.python:
                if language == "python" and "import " in text:
                    (folder / "program.py").write_text(text)
                    self.run(name, [self.python, "program.py"], folder, text)
            elif language == "sh":
                script = self.script(text)
                if re.search(r"^(?!export )", script, re.MULTILINE) and script:
                    self.run(name, ["bash", "-euo", "pipefail", "-c", script], folder, script)
            elif self.versioned:
                pass
            elif language == "c" and "main" in text:
                (folder / "program.c").write_text(text)
                include = f"-I{PROJECT}/c/include -I{PROJECT}/c-gst/include"
                compiled = (
                    f"cc -std=c99 -Wall -Wextra -Werror {include} program.c -o program -L{self.build} -lnmsfilter && ./program"
                )
                self.run(name, ["bash", "-euo", "pipefail", "-c", compiled], folder, text)
        finally:
            shutil.rmtree(folder)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--python", help="a Python with the wheel")
    arguments.add_argument("--versioned", action="store_true", help="commands that need a version of GStreamer")
    options = arguments.parse_args()
    if not DATA.is_dir():
        sys.exit(f"SKIPPED: documents: {DATA} does not exist")
    runner = Runner(options.build.resolve(), options.python, options.versioned)
    for path in documents():
        for language, line, text in blocks(path):
            runner.block(f"{path.relative_to(PROJECT)}:{line}", language, text)
    if options.versioned or options.python:
        runner.left_out, runner.unused = {}, set()
    for command, reason in runner.left_out.items():
        print(f"not run: {command} ({reason})")
    for pattern in runner.unused:
        print(f"FAILED: no command matches {pattern}")
    broken = list(broken_links())
    for link in broken:
        print(f"FAILED: {link} leads nowhere")
    shutil.rmtree(runner.video.parent)
    if runner.broker:
        runner.broker.terminate()
    # Every figure in a table is a program's output.
    figures = subprocess.run([sys.executable, PROJECT / "benches/measurements.py", "--check"])
    failed = runner.failed + len(runner.unused) + len(broken) + figures.returncode
    print(f"{runner.ran - runner.failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
