// SPDX-License-Identifier: MIT OR Apache-2.0
// Times by the number of candidates, up to a million. Part of bench.cu.
//
// Scenes are those of nmsbench (benches/src/workload.rs): uniform boxes, and clusters of ten. For each
// count: GPU microseconds with all pairs compared, where that takes less than a second, and with sorted
// candidates, for several sizes of the first chunk; then of each kernel. Results with and without the sort
// must be the same.
#pragma once

namespace counts {

static std::vector<float> scene(bool is_clustered, uint32_t n) {
    scenes::Random random(n);
    const auto around = [&](float range) { return (random.unit() - 0.5f) * range; };
    struct Object {
        float x, y, side;
    };
    const auto any = [&] {
        const float x = 960.0f + around(1920.0f), y = 540.0f + around(1080.0f);
        return Object{x, y, 66.0f + around(100.0f)};
    };
    std::vector<Object> objects;
    for (uint32_t i = 0; i < (n + 9) / 10; i++) {
        objects.push_back(any());
    }
    std::vector<float> rows;
    for (uint32_t i = 0; i < n; i++) {
        Object box = any();
        if (is_clustered) {
            const Object &object = objects[i % objects.size()];
            const float range = object.side * 0.3f;
            box = {object.x + around(range), object.y + around(range), object.side + around(range)};
        }
        const float half = box.side * 0.5f;
        for (float value :
             {box.x - half, box.y - half, box.x + half, box.y + half, random.unit()}) {
            rows.push_back(value);
        }
    }
    return rows;
}

// Prints the time of each kernel, as the difference of graphs with one kernel more.
static void print_kernels(const Pipeline &pipeline, const KernelParams &params, int repeats) {
    double before = gpu_time([&] { pipeline.reset(); }, repeats);
    const auto print = [&](const char *name, uint32_t chunk, int kernels, uint32_t sort) {
        const double now = gpu_time(
            [&] {
                pipeline.reset();
                pipeline.enqueue(params, false, false, kernels, sort);
            },
            repeats);
        printf("  %s %u: %.1f;", name, chunk, now - before);
        before = now;
        pipeline.reset();
        CHECK(cudaStreamSynchronize(stream));
    };
    print("decode", 0, 1, 0);
    print("map", 0, 2, 0);
    print("reduce", 0, 3, 0);
    uint32_t step = 0;
    for (const char *name : {"sort_count", "sort_scatter", "sort_rank"}) {
        print(name, 0, 3, ++step);
    }
    for (uint32_t chunk = 0; chunk < chunk_count(params.capacity, params.first_chunk); chunk++) {
        for (const char *name : {"filter", "map", "reduce"}) {
            print(name, chunk, 3, ++step);
        }
    }
    print("publish", 0, 4, UINT32_MAX);
    printf("\n");
}

// Whether two launches have the same results.
static bool measure() {
    bool right = true;
    const uint32_t chunks[] = {4096, 8192, 16384, 32768, 65536};
    printf("GPU us; with all pairs compared, and sorted with a first chunk of so many candidates\n");
    printf("%10s %8s %8s %10s |", "", "n", "left", "all pairs");
    for (uint32_t chunk : chunks) {
        printf(" %9u", chunk);
    }
    printf("\n");
    for (bool is_clustered : {true, false}) {
        for (uint32_t n : {1000u, 2000u, 4000u, 5000u, 6000u, 8400u, 10000u, 12000u, 16000u, 20000u,
                           30000u, 100000u, 300000u, 1000000u}) {
            const OnDevice<float> rows(scene(is_clustered, n));
            const int repeats = n <= 30000 ? 20 : n <= 100000 ? 6 : 3;
            KernelParams params = params_of_rows(rows.at, n, 5, CORNERS);
            params.sort_limit = 0;
            double all_pairs = 0.0;
            scenes::Result expected;
            if (n <= 300000) {
                const Pipeline pipeline(n, 1, UINT32_MAX);
                pipeline.enqueue(params, false, false);
                CHECK(cudaStreamSynchronize(stream));
                expected = result_of(pipeline);
                all_pairs = gpu_time([&] { pipeline.enqueue(params, false, false); }, repeats);
            }
            const Pipeline pipeline(n, 1, 0);
            double times[std::size(chunks)];
            for (size_t i = 0; i < std::size(chunks); i++) {
                params.first_chunk = chunks[i];
                pipeline.enqueue(params, false, false);
                CHECK(cudaStreamSynchronize(stream));
                if (expected.candidates == 0) {
                    expected = result_of(pipeline); // compared with that of other chunks
                }
                right &= same(is_clustered ? "clustered" : "uniform", expected, pipeline);
                times[i] = gpu_time([&] { pipeline.enqueue(params, false, false); }, repeats);
            }
            printf("%10s %8u %8zu %10.1f |", is_clustered ? "clustered" : "uniform", n,
                   expected.survivors.size(), all_pairs);
            for (double time : times) {
                printf(" %9.1f", time);
            }
            printf("\n");
            params.first_chunk = FIRST_CHUNK;
            print_kernels(pipeline, params, repeats);
        }
    }
    // What the further kernels cost where they do nothing.
    printf("GPU us of 1000 clustered boxes with memory for so many:");
    const OnDevice<float> rows(scene(true, 1000));
    for (uint32_t capacity : {1000u, 10000u, 100000u, 1000000u}) {
        KernelParams params = params_of_rows(rows.at, 1000, 5, CORNERS);
        params.capacity = capacity;
        const Pipeline pipeline(capacity, 1, SORT_LIMIT), without(capacity, 1, UINT32_MAX);
        printf("  %u: %.2f, without them %.2f;", capacity,
               gpu_time([&] { pipeline.enqueue(params, false, false); }),
               gpu_time([&] { without.enqueue(params, false, false); }));
    }
    printf("\n");
    return right;
}

} // namespace counts
