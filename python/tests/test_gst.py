# SPDX-License-Identifier: MIT OR Apache-2.0
"""nmsfilter.gst: its structures are those of nmsfilter/gst.h; arrays attached, regions read, in pipelines."""

import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import weakref

import numpy
from arrays import DATA, ROOT, OnlyDlpack, needs_data
from test_decode import recorded

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    gi.require_version("GstVideo", "1.0")
    import nmsfilter.gst as gst
    from gi.repository import Gst, GstApp, GstVideo  # noqa: F401 (the methods of appsrc and appsink)

    Gst.init(None)
    WHY_NOT = None
except (ImportError, ValueError) as error:
    WHY_NOT = str(error)

from nmsfilter import InputError, _gst_types

needs_gstreamer = unittest.skipIf(WHY_NOT is not None, f"GStreamer cannot be used: {WHY_NOT}")


class Structures(unittest.TestCase):
    def test_they_are_those_of_the_header(self):
        compiler = shutil.which(os.environ.get("CC", "cc"))
        flags = subprocess.run(["pkg-config", "--cflags", "gstreamer-1.0"], capture_output=True, text=True)
        if compiler is None or flags.returncode != 0:
            self.skipTest("there is no C compiler, or no pkg-config file of GStreamer")
        structures = [_gst_types.Model, _gst_types.Tensor, _gst_types.Region, _gst_types.Class]
        lines, expected = [], []
        for structure in structures:
            name = f"NmsfilterGst{structure.__name__}"
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(structure)}")
            for field, kind in structure._fields_:
                lines.append(f'printf("{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
                expected.append(f"{field} {getattr(structure, field).offset} {ctypes.sizeof(kind)}")
        letterboxes = {"none": "NONE", "center": "CENTER", "top-left": "TOP_LEFT"}
        types = {"float32": "F32", "float16": "F16", "int8": "I8", "uint8": "U8", "int32": "I32", "int64": "I64"}
        for table, prefix, names in (
            (_gst_types.LETTERBOXES, "LETTERBOX", letterboxes),
            (_gst_types.ELEMENT_TYPES, "ELEMENT_TYPE", types),
            (vars(_gst_types.Memory), "MEMORY", {"HOST": "HOST", "DEVICE": "DEVICE"}),
        ):
            for ours, theirs in names.items():
                lines.append(f'printf("%d\\n", NMSFILTER_GST_{prefix}_{theirs});')
                expected.append(str(table[ours]))
        program = "#include <stdio.h>\n#include <nmsfilter/gst.h>\nint main(void) {" + "\n".join(lines) + "}\n"
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "main.c")
            with open(source, "w") as file:
                file.write(program)
            command = [compiler, source, "-o", f"{folder}/main", f"-I{ROOT}/c-gst/include", *flags.stdout.split()]
            subprocess.run(command, check=True)
            found = subprocess.run([f"{folder}/main"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(found.splitlines(), expected)
        # No field of the header is missing: the sizes are equal, and so are the numbers of fields.
        header = (ROOT / "c-gst/include/nmsfilter/gst.h").read_text()
        for structure in structures:
            body = header.split(f"typedef struct NmsfilterGst{structure.__name__} {{")[1].split("} Nmsfilter")[0]
            fields = [line for line in body.splitlines() if line.strip().endswith(";") and not line.strip().startswith("*")]
            self.assertEqual(len(fields), len(structure._fields_), structure)


@needs_gstreamer
class Mistakes(unittest.TestCase):
    def expect(self, error, message, function, *arguments, **settings):
        with self.assertRaises(error) as caught:
            function(*arguments, **settings)
        self.assertEqual(str(caught.exception), message)

    def test_models(self):
        def expect(error, message, *arguments, **settings):
            self.expect(error, message, gst.model, *arguments, **settings)

        expect(
            TypeError, "labels: expected a list of names, got 'person'; a single name is ['person']", labels="person")
        expect(TypeError, "labels[1]: expected a name, got 3", labels=["person", 3])
        expect(InputError, "labels[0]: expected a name without zero bytes, got 'a\\x00b'", labels=["a\0b"])
        size = "size: expected width and height of the model's input in pixels"
        for wrong in ((0, 0), (640, 0), (-640, 640), (2**40, 640)):
            expect(InputError, f"{size}, each at least 1, got {wrong!r}; leave it out if it is unknown", wrong)
        for wrong in (640, (640,), "ab", (640.5, 640)):
            expect(TypeError, f"{size}, got {wrong!r}", wrong)
        expect(
            InputError, "keypoint_shape: expected keypoints of 2 (x, y) or 3 (x, y, visibility) numbers, got 4",
            keypoint_shape=(17, 4))
        gst.model((numpy.int64(640), 480), labels=("person",), keypoint_shape=[17, 3])

    def test_tensors(self):
        buffer, array = Gst.Buffer.new_allocate(None, 16, None), numpy.zeros((3, 4), numpy.float32)

        def expect(error, message, tensors, **settings):
            self.expect(error, message, gst.attach, buffer, tensors, **settings)

        expect(InputError, "tensors: expected the arrays of a model's outputs, got none", {})
        names = "tensors: expected a dictionary from the names of the model's outputs to arrays, got "
        expect(TypeError, f"{names}list", [array])
        expect(TypeError, f"{names}ndarray", array)
        expect(TypeError, "tensors: expected the names of outputs as keys, got 3", {"windows": array, 3: array})
        tensors = {"windows": array}
        expect(TypeError, "model: expected what model() returns, got (640, 640)", tensors, model=(640, 640))
        pairs = "quantization: expected a dictionary from names of tensors to (scale, zero point)"
        expect(TypeError, f"{pairs}, got (0.5, 0)", tensors, quantization=(0.5, 0))
        expect(
            InputError, f"{pairs}, got the name 'window'; the tensors are windows", tensors,
            quantization={"window": (0.5, 0)})
        for wrong in (0.5, (0, 0), (0.5, 0.5), (float("nan"), 0), (0.5, 2**40)):
            expect(
                InputError, f"{pairs} with a scale above 0, got {wrong!r} for 'windows'", tensors,
                quantization={"windows": wrong})
        # None of them has been attached.
        gst.attach(buffer, tensors)


class Pipeline:
    """appsrc, nmsfilter and appsink."""

    def __init__(self, width, height, properties=""):
        self.pipeline = Gst.parse_launch(
            f"appsrc name=in format=time caps=video/x-raw,format=GRAY8,width={width},height={height},framerate=1/1 "
            f"! nmsfilter backend=cpu {properties} ! appsink name=out sync=false"
        )
        self.size = width * height
        self.pipeline.set_state(Gst.State.PLAYING)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def buffer(self):
        buffer = Gst.Buffer.new_allocate(None, self.size, None)
        buffer.pts = 0
        return buffer

    def run(self, buffer):
        self.pipeline.get_by_name("in").emit("push-buffer", buffer)
        sample = self.pipeline.get_by_name("out").emit("try-pull-sample", 60 * Gst.SECOND)
        if sample is None:
            error = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise AssertionError(error.parse_error() if error else "no sample")
        return sample.get_buffer()


@needs_gstreamer
class Attach(unittest.TestCase):
    WINDOWS = numpy.array([[10, 10, 20, 0.9], [11, 11, 20, 0.6], [40, 40, 20, 0.7]], numpy.float32)

    def test_regions_are_those_of_the_element(self):
        with Pipeline(64, 64) as pipeline:
            buffer = pipeline.buffer()
            model = gst.model((64, 64), letterbox="none", labels=["a face"])
            gst.attach(buffer, {"windows": self.WINDOWS}, model=model)
            out = pipeline.run(buffer)
            found = gst.regions(out)
            self.assertEqual(found.labels, ["a face", "a face"])
            numpy.testing.assert_array_equal(found["score"].astype(numpy.float32), numpy.float32([0.9, 0.7]))
            # What GStreamer's own function returns.
            for index, record in enumerate(found):
                meta = GstVideo.buffer_get_video_region_of_interest_meta_id(out, int(record["id"]))
                theirs = [meta.x, meta.y, meta.w, meta.h]
                self.assertEqual([int(record[side]) for side in ("left", "top", "width", "height")], theirs)
            self.assertTrue(numpy.isnan(found["rotation"]).all())
            self.assertIsNone(found.keypoints(0))
            self.assertIsNone(found.mask(0))
            better = found[found["score"] > 0.8]
            self.assertEqual((len(better), better.labels), (1, ["a face"]))

    def test_tiles_of_a_frame_are_suppressed_together(self):
        model = gst.model((64, 64), letterbox="none")
        with Pipeline(128, 64) as pipeline:
            buffer = pipeline.buffer()
            # The object at 50,10 of the frame is in both tiles.
            gst.attach(buffer, {"windows": numpy.float32([[40, 10, 20, 0.8]])}, model=model, region=(10, 0, 64, 64))
            right = numpy.float32([[10, 10, 20, 0.9]])
            gst.attach(buffer, {"windows": right}, model=model, region=(40, 0, 64, 64), parent=7)
            found = gst.regions(pipeline.run(buffer))
        self.assertEqual([int(found[side][0]) for side in ("left", "top", "width", "height")], [50, 10, 20, 20])
        self.assertEqual((len(found), int(found["parent_id"][0])), (1, 7))

    def test_a_model_says_that_a_box_can_have_several_classes(self):
        boxes = numpy.float32([[[0.5, 0.5, 0.25, 0.5], [0.1, 0.1, 0.1, 0.1]]])
        logits = numpy.float32([[[4, 3, -9], [2, -9, -9]]])
        for queries, expected in [(2, [(0, 0.5), (1, 0.5)]), (None, [(0, 0.5), (0, 0.1)])]:
            model = gst.model((64, 64), letterbox="none", suppressed=True, queries=queries)
            with Pipeline(64, 64) as pipeline:
                buffer = pipeline.buffer()
                gst.attach(buffer, {"detr-boxes": boxes, "detr-logits": logits}, model=model)
                found = gst.regions(pipeline.run(buffer))
            centers = (found["x_min"] + found["x_max"]) / 2
            self.assertEqual(list(zip(found["class_id"].tolist(), centers.round(2).tolist())), expected)
        with self.assertRaisesRegex(InputError, "queries: expected the number of pairs of box and class, at least 1, got 0"):
            gst.model((64, 64), queries=0)

    def test_objects_have_the_classes_of_a_classifier(self):
        model = gst.model(labels=["red", "green", "blue"])
        with Pipeline(128, 64, "multi-label=true score-threshold=0.1") as pipeline:
            buffer = pipeline.buffer()
            for left in (0, 64):
                meta = GstVideo.buffer_add_video_region_of_interest_meta(buffer, "car", left, 0, 64, 64)
                meta.id = left
            scores = {"classification-generic-softmaxed-out": numpy.float32([[0.25, 0.0, 0.75]])}
            gst.attach(buffer, scores, model=model, region=(64, 0, 64, 64), parent=64)
            found = gst.regions(pipeline.run(buffer))
        self.assertEqual(found.labels, ["car", "car"])
        expected = [("blue", 0.75, 2), ("red", 0.25, 0)]
        self.assertEqual([found.classes(0), found.classes(1)], [[], expected])
        self.assertEqual(found[found["left"] > 0].classes(0), expected)
        self.assertEqual([found.attributes(0), found.attributes(1)], [[], list(scores) * 2])
        self.assertEqual(gst.regions(Gst.Buffer.new()).labels, [])

    def test_a_region_that_is_not_valid_is_an_error(self):
        buffer = Gst.Buffer.new()
        for region in [(0, 0, 64), (0, 0, 0, 64), (-1, 0, 64, 64), "0,0,64,64", (0.5, 0, 64, 64), 5]:
            with self.assertRaisesRegex(gst.InputError, "region: expected"):
                gst.attach(buffer, {"windows": self.WINDOWS}, region=region)
        with self.assertRaisesRegex(gst.InputError, "parent: expected a region with it"):
            gst.attach(buffer, {"windows": self.WINDOWS}, parent=3)

    def test_a_buffer_without_regions(self):
        found = gst.regions(Gst.Buffer.new())
        self.assertEqual((len(found), found.labels), (0, []))

    def test_more_regions_than_expected_before(self):
        count = 700
        windows = numpy.zeros((count, 4), numpy.float32)
        windows[:, 0], windows[:, 1] = numpy.arange(count) % 30 * 20, numpy.arange(count) // 30 * 20
        windows[:, 2], windows[:, 3] = 10, numpy.linspace(0.9, 0.5, count)
        with Pipeline(640, 640, "max-detections=0") as pipeline:
            buffer = pipeline.buffer()
            gst.attach(buffer, {"windows": windows}, model=gst.model((640, 640)))
            found = gst.regions(pipeline.run(buffer))
        self.assertEqual(len(found), count)
        self.assertEqual(found["left"].tolist(), windows[:, 0].tolist())

    def test_arrays_are_kept_until_the_buffer_is_freed(self):
        class Windows(numpy.ndarray):
            pass

        array = self.WINDOWS.copy().view(Windows)
        known = weakref.ref(array)
        buffer = Gst.Buffer.new()
        gst.attach(buffer, {"windows": array})
        del array
        gc.collect()
        self.assertIsNotNone(known())
        del buffer
        gc.collect()
        self.assertIsNone(known())

    def test_an_array_that_is_not_attached_is_not_kept(self):
        class Windows(numpy.ndarray):
            pass

        array = self.WINDOWS.copy().view(Windows)
        known = weakref.ref(array)
        buffer = Gst.Buffer.new()
        sample = Gst.Sample.new(buffer, None, None, None)
        with self.assertRaises(InputError):
            gst.attach(buffer, {"windows": array})
        del array, sample
        gc.collect()
        self.assertIsNone(known())

    def test_objects_with_dlpack_are_kept(self):
        with Pipeline(64, 64) as pipeline:
            buffer = pipeline.buffer()
            gst.attach(buffer, {"windows": OnlyDlpack(self.WINDOWS.copy())}, model=gst.model((64, 64)))
            gc.collect()
            self.assertEqual(gst.regions(pipeline.run(buffer))["left"].tolist(), [10, 40])

    @needs_data("data/models2026")
    def test_recorded_models(self):
        for name, tensor_id, properties in (
            ("03_pose_pixels/bus", "yolo-v8-pose-out", "decoder=yolov8-pose"),
            ("04_obb/nnstreamer", "obb", "decoder=yolov8-obb"),
            ("02_seg_yolov8/bus", None, "decoder=yolov8-seg"),
            ("09_quantised_yolov8/bus", None, "decoder=yolov8"),
        ):
            with self.subTest(case=name):
                outputs, settings, rows = recorded(name)
                width, height = settings["model_size"]
                properties += f" iou-threshold=0.45 score-threshold=0.25 coordinates={settings['coordinates']}"
                with Pipeline(width, height, properties) as pipeline:
                    buffer = pipeline.buffer()
                    tensors = {tensor_id or key: array for key, array in outputs.items()}
                    model = gst.model((width, height), letterbox="none")
                    gst.attach(buffer, tensors, model=model, quantization=settings["quantization"])
                    found = gst.regions(pipeline.run(buffer))
                self.assertEqual(len(found), len(rows))
                self.assertEqual(found["class_id"].tolist(), [int(float(row["class"])) for row in rows])
                scores = [float(row["score"]) for row in rows]
                numpy.testing.assert_allclose(found["score"], scores, atol=1e-5)
                # The detections of the picture are inside of the frame, but for a pixel or two.
                left = numpy.clip([float(row["x1"]) for row in rows], 0, width) / width
                numpy.testing.assert_allclose(found["x_min"], left, atol=0.001)
                self.check_details(found, rows, name)

    def check_details(self, found, rows, name):
        last = len(rows) - 1
        if "k0x" in rows[0]:
            points = found[1:].keypoints(last - 1)
            self.assertEqual((points.shape, found.keypoint_layout(0)), ((17, 3), "coco-17"))
            self.assertAlmostEqual(float(points[3, 0]), float(rows[last]["k3x"]), places=1)
        if "angle" in rows[0]:
            numpy.testing.assert_allclose(found["center_x"], [float(row["cx"]) for row in rows], atol=0.01)
            numpy.testing.assert_allclose(found["oriented_width"], [float(row["w"]) for row in rows], atol=0.01)
            turns = (found["rotation"] - [float(row["angle"]) for row in rows]) / numpy.pi
            numpy.testing.assert_allclose(turns, numpy.round(turns), atol=1e-4)
        if "mask_area" in rows[0]:
            stored = numpy.load(DATA / "data/models2026" / name / "masks.npz")
            whole = numpy.unpackbits(stored["masks"], axis=-1)
            mask = found[::-1].mask(0)
            self.assertEqual(mask.shape, (int(found[last]["mask_height"]), int(found[last]["mask_width"])))
            self.assertLessEqual(abs(int(mask.sum()) - int(whole[last].sum())), 2)

    def test_mistakes(self):
        for error, message, buffer, tensors in (
            (TypeError, "buffer: expected a Gst.Buffer, got builtins.int", 7, {}),
            (TypeError,
             "tensors['x']: expected float32, float16, int8, uint8, int32 or int64, got float64; the memory is read as it "
             "is: convert the array, to float32 by tensors['x'].astype(\"float32\")",
             Gst.Buffer.new(), {"x": numpy.zeros((3, 4))}),
            (InputError,
             "tensors['x']: expected elements without gaps, got a view with strides; the memory is read as it is: copy it, "
             "by numpy.ascontiguousarray",
             Gst.Buffer.new(), {"x": self.WINDOWS[:, ::2]}),
        ):
            with self.assertRaises(error) as caught:
                gst.attach(buffer, tensors)
            self.assertEqual(str(caught.exception), message)
        buffer = Gst.Buffer.new()
        sample = Gst.Sample.new(buffer, None, None, None)
        with self.assertRaises(InputError) as caught:
            gst.attach(buffer, {"windows": self.WINDOWS})
        self.assertEqual(
            str(caught.exception),
            "buffer: expected a buffer that nothing else refers to; attach to it before it is pushed, or to a copy "
            "(buffer.copy())")
        del sample
        with self.assertRaises(InputError) as caught:
            gst.model((640, 640), letterbox="both")
        self.assertEqual(str(caught.exception), "letterbox: expected one of none, center, top-left, got 'both'")


@needs_gstreamer
class Import(unittest.TestCase):
    def run_python(self, program, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GST_PLUGIN")}
        environment.update(variables)
        with tempfile.TemporaryDirectory() as folder:
            environment["GST_REGISTRY"] = f"{folder}/registry.bin"
            done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    FIND = "print(*(Gst.ElementFactory.find(n).get_plugin().get_filename() for n in ('nmsfilter', 'ortinference')))"
    GST = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None);"
    PROGRAMS = f"import nmsfilter.gst; {GST} {FIND}", f"{GST} import nmsfilter.gst; {FIND}"

    def setUp(self):
        self.own = [os.path.join(gst.PLUGIN_FOLDER, name, f"libgst{name}.so") for name in ("nmsfilter", "onnxruntime")]

    def test_before_and_after_gstreamer(self):
        for program in self.PROGRAMS:
            self.assertEqual(self.run_python(program), self.own)

    def test_a_plugin_that_gstreamer_finds_elsewhere_comes_first_and_the_other_is_of_the_package(self):
        for index in range(2):
            with tempfile.TemporaryDirectory() as folder:
                expected = list(self.own)
                expected[index] = shutil.copy(self.own[index], folder)
                for name in ("GST_PLUGIN_PATH", "GST_PLUGIN_PATH_1_0", "GST_PLUGIN_SYSTEM_PATH"):
                    for program in self.PROGRAMS:
                        with self.subTest(name, program=program, index=index):
                            self.assertEqual(self.run_python(program, **{name: folder}), expected)
                told = self.run_python("from nmsfilter.__main__ import main; main()", **{name: folder})
                self.assertEqual([word.rstrip(",") for word in told if word.strip(",").endswith(".so")], expected)

    def test_buffers_that_outlive_python(self):
        """GStreamer's threads free buffers, with arrays, while and after Python ends."""
        program = f"""{self.GST}
import numpy, nmsfilter.gst as gst
pipeline = Gst.parse_launch("appsrc name=in ! queue ! fakesink sync=true")
pipeline.set_state(Gst.State.PLAYING)
for index in range(50):
    buffer = Gst.Buffer.new_allocate(None, 16, None)
    buffer.pts = index * Gst.MSECOND
    gst.attach(buffer, {{"windows": numpy.zeros((10, 4), numpy.float32)}})
    pipeline.get_by_name("in").emit("push-buffer", buffer)
print("done")
"""
        self.assertEqual(self.run_python(program), ["done"])


class SelfTest(unittest.TestCase):
    def test_it_says_what_works(self):
        done = subprocess.run([sys.executable, "-m", "nmsfilter"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line[:24].strip(): line[25:] for line in done.stdout.splitlines()[1:]}
        self.assertEqual(list(lines), ["NumPy", "CPU", "GPU", "GStreamer", "tensors and regions", "ONNX Runtime"])
        self.assertTrue(lines["CPU"].startswith("works: "), done.stdout)
        for name, line in lines.items():
            self.assertRegex(line, "^(works|no): ." if name != "NumPy" else r"^\d", done.stdout)
        if WHY_NOT is None:
            for name in ("GStreamer", "tensors and regions"):
                self.assertTrue(lines[name].startswith("works: "), done.stdout)


if __name__ == "__main__":
    unittest.main()
