# SPDX-License-Identifier: MIT OR Apache-2.0
"""Assembles PTX for each architecture and prints a table of what each kernel uses; see check.sh."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = (60, 61, 72, 75, 87, 90, 110)


def assembler(tools: pathlib.Path, toolkit: str) -> pathlib.Path:
    for path in (tools / toolkit).rglob("ptxas"):
        path.chmod(0o755)
        return path
    sys.exit(f"no ptxas in {tools / toolkit}; remove the folder and run again")


def assemble(ptxas: pathlib.Path, ptx: pathlib.Path, architecture: int) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        command = [ptxas, f"-arch=sm_{architecture}", "-v", ptx, "-o", cubin.name]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{ptx.name} for sm_{architecture} with {ptxas}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def kernels(report: str):
    """Name, registers, spilled bytes and shared bytes of each kernel of an assembler's report."""
    for part in report.split("Compiling entry function '")[1:]:
        name = part.split("'", 1)[0]
        numbers = [
            re.search(pattern, part)
            for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"(\d+) bytes smem")
        ]
        registers, spilled, shared = (int(n.group(1)) if n else 0 for n in numbers)
        yield name, registers, spilled, shared


def main() -> None:
    tools, folder = (pathlib.Path(argument) for argument in sys.argv[1:])
    toolkits = {toolkit: assembler(tools, toolkit) for toolkit in ("11", "12", "13")}
    files = sorted(folder.glob("*.ptx"))
    least = {ptx: int(ptx.name.split(".sm_")[1].split(".")[0]) for ptx in files}

    def is_loaded(ptx: pathlib.Path, architecture: int) -> bool:
        """Whether the plugin loads this file on such a GPU: of those with its name, the newest that fits."""
        fitting = [
            other
            for other in files
            if other.name.split(".")[0] == ptx.name.split(".")[0] and least[other] <= architecture
        ]
        return ptx in fitting and least[ptx] == max(map(least.get, fitting))

    jobs = [
        (ptx, architecture, toolkits["13" if architecture > 90 else "12"])
        for ptx in files
        for architecture in ARCHITECTURES
        if is_loaded(ptx, architecture)
    ]
    # The oldest toolkit, too, whose driver compiles the same file; that of sm_90 is above.
    oldest = [(ptx, max(least[ptx], 87), toolkits["11"]) for ptx in files if least[ptx] < 90]
    rows, spills = {}, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = pool.map(lambda job: assemble(job[2], job[0], job[1]), jobs + oldest)
        for (ptx, architecture, _), report in zip(jobs, reports):
            for name, registers, spilled, shared in kernels(report):
                cells = rows.setdefault((ptx.name, name), {})
                cells[architecture] = f"{registers}/{spilled}/{shared}"
                if spilled:
                    spills.append(f"{name} of {ptx.name} spills {spilled} bytes on sm_{architecture}")
        # Raises the error of one that failed.
        list(reports)
    print("registers / bytes spilled / bytes shared")
    print(f"{'':38}" + "".join(f"{f'sm_{a}':>12}" for a in ARCHITECTURES))
    for (ptx, name), cells in rows.items():
        print(f"{ptx:22}{name:16}" + "".join(f"{cells.get(a, '-'):>12}" for a in ARCHITECTURES))
    if not rows:
        sys.exit(f"no PTX in {folder}")
    if spills:
        sys.exit("\n".join(spills))


main()
