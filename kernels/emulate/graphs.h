// SPDX-License-Identifier: MIT OR Apache-2.0
// The stub driver's graphs, which are kernels and memsets in sequence, and launches of single kernels. Both are
// executed by the launch. Part of libcuda.cpp.
#pragma once

// CUDA_MEMSET_NODE_PARAMS
struct MemsetParameters {
    uint64_t address;
    size_t pitch;
    uint32_t value, element_bytes;
    size_t width, height;
};
struct Node {
    const Function *function; // nullptr: a memset
    Index grid, block;
    std::vector<std::vector<char>> parameters;
    MemsetParameters memset;
    bool follows; // the node before it in the graph
};
struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;
};
struct Executable {
    std::vector<Node> nodes;
    std::vector<const Node *> from; // the nodes of the graph that they are copies of
};
// CUDA_KERNEL_NODE_PARAMS
struct NodeParameters {
    const Function *function;
    uint32_t grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void **parameters;
    void **extra;
};

static bool is_resample(const Function &function) { return strncmp(function.name, "resample_", 9) == 0; }

static bool fill(Node &node, const NodeParameters &from) {
    if (!from.function ||
        (from.function->threads != 0 && from.block_x != from.function->threads) ||
        from.block_y != from.function->threads_y || from.block_z != 1 || from.grid_x == 0 || from.grid_y == 0 || from.grid_z == 0 ||
        (from.grid_z != 1 && !is_resample(*from.function)) || from.shared_bytes != 0 || !from.parameters) {
        return false;
    }
    node.function = from.function;
    node.grid = Index{from.grid_x, from.grid_y, from.grid_z};
    node.block = Index{from.block_x, from.block_y};
    node.parameters.clear();
    for (size_t i = 0; i < from.function->parameters.size(); i++) {
        const char *const value = (const char *)from.parameters[i];
        node.parameters.emplace_back(value, value + from.function->parameters[i]);
    }
    return true;
}

template <typename T> static T parameter(const Node &node, size_t number) {
    T value;
    memcpy(&value, node.parameters[number].data(), sizeof value);
    return value;
}

// The kernels of resample.cu, by element size.
static void run_resample(const Node &node, uint64_t seed) {
    const ResampleParams params = parameter<ResampleParams>(node, 0);
    if (node.grid.x != (params.width + RESAMPLE_THREADS - 1) / RESAMPLE_THREADS ||
        node.grid.y != params.height) {
        cuda_on_host::fail("resample is not launched as resample.cu describes");
    }
    resample_launches++;
    const std::string name = node.function->name;
    cuda_on_host::launch(node.grid, Index{RESAMPLE_THREADS}, 3, seed, [=] {
        (name == "resample_32"   ? resample_32
         : name == "resample_16" ? resample_16
                                 : resample_8)(params);
    });
}

// Whether the memory that a kernel of resample.cu accesses is allocated, and its output and table are
// aligned.
static bool is_accessible(const ResampleParams &params, uint32_t pictures, uint32_t element_bytes) {
    const uint64_t size = uint64_t(params.channels) * params.width * params.height;
    const uint64_t last_x = params.width - 1, last_y = params.height - 1;
    const uint64_t elements = (pictures - 1) * size + 1 + last_y * params.output_row_stride +
                              last_x * params.output_pixel_stride +
                              uint64_t(params.channels - 1) * params.output_channel_stride;
    const uint64_t sides = params.width + params.height;
    std::lock_guard<std::mutex> guard(lock);
    const auto is_allocated = [](uint64_t at, uint64_t bytes) {
        return holding(at, bytes) != allocations.end();
    };
    if (!is_allocated(params.positions, pictures * CHANNELS * sides * 4)) {
        return false;
    }
    // The index of the last sample that positions need; 0 if all are outside of the region.
    const auto last = [](const uint32_t *positions, uint32_t count) {
        uint64_t sample = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (positions[i] != OUTSIDE) {
                sample = std::max(sample, (uint64_t(positions[i]) + (1 << POSITION_BITS) - 1) >> POSITION_BITS);
            }
        }
        return sample;
    };
    for (uint32_t region = 0; region < pictures; region++) {
        for (uint32_t k = 0; k < params.component_count; k++) {
            const ResampleComponent &component = params.components[k];
            const uint32_t *const positions =
                (const uint32_t *)params.positions + (region * CHANNELS + k) * sides;
            if (!is_allocated(component.samples,
                              1 + last(positions + params.width, params.height) * component.row_stride +
                                  last(positions, params.width) * component.pixel_stride)) {
                return false;
            }
        }
    }
    return (params.table | params.output) % element_bytes == 0 &&
           is_allocated(params.table, uint64_t(params.channels) * VALUES * element_bytes) &&
           is_allocated(params.output, elements * element_bytes);
}

// The kernels of masks.cuh.
static void run_masks(const Node &node, uint64_t seed) {
    void *const workspace = parameter<void *>(node, 0);
    const uint64_t stride = parameter<uint64_t>(node, 1);
    const MaskParams params = parameter<MaskParams>(node, 2);
    uint32_t *const words = parameter<uint32_t *>(node, 3);
    const bool is_frame = node.function->name == std::string("frame_masks");
    cuda_on_host::launch(node.grid, Index{MASK_THREADS}, 3, seed, [&] {
        (is_frame ? frame_masks : masks)(workspace, stride, params, words);
    });
}

// A kernel that decodes any layout, without and with multi_label.
static void run_decode(void (*const (&kernels)[2])(KernelParams, void *, uint64_t, LayoutParams),
                       const Node &node, uint64_t seed) {
    const KernelParams params = parameter<KernelParams>(node, 0);
    void *const workspace = parameter<void *>(node, 1);
    const uint64_t stride = parameter<uint64_t>(node, 2);
    const LayoutParams layout = parameter<LayoutParams>(node, 3);
    const std::string name = node.function->name;
    const bool is_multi = name.size() > 6 && name.compare(name.size() - 6, 6, "_multi") == 0;
    if (node.grid.y != params.images || params.multi_label != is_multi || params.classes != layout.components) {
        cuda_on_host::fail("decode is not launched as layout.cuh describes");
    }
    cuda_on_host::launch(node.grid, Index{node.function->threads}, 3, seed,
                         [&] { kernels[is_multi](params, workspace, stride, layout); });
}

// A kernel that reduces. Without blocks that have no candidate: emulating them takes time.
static void run_reduce(const std::function<void(void *, uint64_t)> &kernel, const Node &node,
                       uint64_t seed) {
    void *const workspace = parameter<void *>(node, 0);
    const uint64_t stride = parameter<uint64_t>(node, 1);
    uint32_t candidates = 0;
    for (uint32_t group = 0; group < node.grid.y; group++) {
        const char *const header = (const char *)workspace + group * stride;
        candidates = max(candidates, candidate_count((const Header *)header));
    }
    const Index needed{min(node.grid.x, candidates / REDUCE_WARPS + 1), node.grid.y};
    cuda_on_host::launch(needed, Index{node.function->threads}, 3, seed,
                         [&] { kernel(workspace, stride); });
}

// The kernels for oriented boxes.
static void run_oriented(const Node &node, uint64_t seed) {
    const std::string name = node.function->name;
    if (name == "map_oriented") {
        void *const workspace = parameter<void *>(node, 0);
        const uint64_t stride = parameter<uint64_t>(node, 1);
        cuda_on_host::launch(node.grid, Index{node.function->threads}, 3, seed,
                             [=] { map_oriented(workspace, stride); });
    } else if (name == "reduce_oriented") {
        run_reduce(reduce_oriented, node, seed);
    } else {
        run_decode({decode_oriented, decode_oriented_multi}, node, seed);
    }
}

// Whether the candidates of any group are sorted.
static bool sorts(const Node &node) {
    for (uint32_t group = 0; group < node.grid.y; group++) {
        const uint64_t at = group * parameter<uint64_t>(node, 1);
        if (is_sorted((const Header *)((const char *)parameter<void *>(node, 0) + at))) {
            return true;
        }
    }
    return false;
}

// The kernels of sort.cuh, chunk.cuh and reduce_chunk.cuh. Where they do nothing they are not run: emulating
// them takes time.
static void run_sort(const Node &node, uint64_t seed) {
    void *const workspace = parameter<void *>(node, 0);
    const uint64_t stride = parameter<uint64_t>(node, 1);
    const std::string name = node.function->name;
    if (!sorts(node)) {
        return;
    }
    sorted_launches += name == "sort_count";
    if (name == "chunk_reduce") {
        const uint32_t chunk = parameter<uint32_t>(node, 2);
        run_reduce([=](void *, uint64_t) { chunk_reduce(workspace, stride, chunk); }, node, seed);
        return;
    }
    cuda_on_host::launch(node.grid, Index{node.function->threads}, 3, seed, [&] {
        if (name == "sort_count") {
            sort_count(workspace, stride);
        } else if (name == "sort_scatter") {
            sort_scatter(workspace, stride);
        } else if (name == "sort_rank") {
            sort_rank(workspace, stride);
        } else if (name == "chunk_filter") {
            chunk_filter(workspace, stride, parameter<uint32_t>(node, 2));
        } else {
            chunk_map(workspace, stride, parameter<uint32_t>(node, 2));
        }
    });
}

// The kernels of merge.cuh, merge_boxes.cuh, rescore.cuh and by_column.cuh.
static void run_merge(const Node &node, uint64_t seed) {
    void *const workspace = parameter<void *>(node, 0);
    const uint64_t stride = parameter<uint64_t>(node, 1);
    const std::string name = node.function->name;
    const std::map<std::string, void (*)(void *, uint64_t)> without_params = {
        {"merge_claims", merge_claims}, {"merge_classes", merge_classes},
        {"merge_roots", merge_roots},   {"merge_order", merge_order},
        {"merge_rank", merge_rank},     {"merge_average", merge_average},
        {"merge_fuse", merge_fuse},     {"merge_compensate", merge_compensate},
    };
    const std::map<std::string, void (*)(void *, uint64_t, MergeParams)> with_params = {
        {"merge_grow", merge_grow}, {"merge_soften", merge_soften}, {"merge_decay", merge_decay}};
    cuda_on_host::launch(node.grid, Index{node.function->threads}, 3, seed, [&] {
        const auto kernel = without_params.find(name);
        if (kernel != without_params.end()) {
            kernel->second(workspace, stride);
        } else if (name == "merge_by_column") {
            merge_by_column(workspace, stride, parameter<ByColumnParams>(node, 2),
                            parameter<ColumnParams>(node, 3));
        } else {
            with_params.at(name)(workspace, stride, parameter<MergeParams>(node, 2));
        }
    });
}

// The kernels of paper.cu.
static void run_paper(const Node &node, uint64_t seed) {
    if (node.function->name == std::string("paper_map")) {
        cuda_on_host::launch(node.grid, node.block, 4, seed, [&] {
            paper_map(parameter<const float4 *>(node, 0), parameter<uint32_t>(node, 1),
                      parameter<float>(node, 2), parameter<uint8_t *>(node, 3),
                      parameter<uint32_t>(node, 4));
        });
    } else {
        cuda_on_host::launch(node.grid, node.block, 4, seed, [&] {
            paper_reduce(parameter<const uint8_t *>(node, 0), parameter<uint8_t *>(node, 1),
                         parameter<uint32_t>(node, 2), parameter<uint32_t>(node, 3));
        });
    }
}

static void run(const Node &node, uint64_t seed) {
    if (!node.function) {
        const MemsetParameters &to = node.memset;
        for (size_t row = 0; row < to.height; row++) {
            memset((void *)(to.address + row * to.pitch), int(to.value), to.width);
        }
        return;
    }
    const std::string of = node.function->name;
    if (of.compare(0, 6, "paper_") == 0) {
        run_paper(node, seed);
        return;
    }
    if (of == "indices") {
        cuda_on_host::launch(node.grid, Index{node.function->threads}, 1, seed, [&] {
            indices(parameter<const Detection *>(node, 0), parameter<uint32_t>(node, 1),
                    parameter<int64_t *>(node, 2));
        });
        return;
    }
    if (of.compare(0, 6, "merge_") == 0) {
        run_merge(node, seed);
        return;
    }
    if (of.compare(0, 5, "sort_") == 0 || of.compare(0, 6, "chunk_") == 0) {
        run_sort(node, seed);
        return;
    }
    if (std::string(node.function->name).find("_oriented") != std::string::npos) {
        run_oriented(node, seed);
        return;
    }
    const size_t kernel = size_t(node.function - FUNCTIONS);
    const Index threads{node.function->threads};
    if (node.function->threads == MASK_THREADS && node.function->parameters.size() == 4 &&
        node.function->parameters[2] == sizeof(MaskParams)) {
        run_masks(node, seed);
        return;
    }
    if (kernel >= 18) {
        run_resample(node, seed);
        return;
    }
    if (kernel < 8) {
        const KernelParams params = parameter<KernelParams>(node, 0);
        void *const workspace = parameter<void *>(node, 1);
        const uint64_t stride = parameter<uint64_t>(node, 2);
        if (node.grid.y != params.images || params.multi_label != kernel / 4) {
            cuda_on_host::fail("decode is not launched as interface.cuh describes");
        }
        cuda_on_host::launch(node.grid, threads, 3, seed, [=] {
            switch (kernel) {
            case 0: decode_f32_f32(params, workspace, stride); break;
            case 1: decode_f32_f16(params, workspace, stride); break;
            case 2: decode_f16_f32(params, workspace, stride); break;
            case 3: decode_f16_f16(params, workspace, stride); break;
            case 4: decode_multi_f32_f32(params, workspace, stride); break;
            case 5: decode_multi_f32_f16(params, workspace, stride); break;
            case 6: decode_multi_f16_f32(params, workspace, stride); break;
            default: decode_multi_f16_f16(params, workspace, stride);
            }
        });
        return;
    }
    if (kernel == 14 || kernel == 15) {
        run_decode({decode_layout, decode_layout_multi}, node, seed);
        return;
    }
    void *const workspace = parameter<void *>(node, 0);
    const uint64_t stride = parameter<uint64_t>(node, 1);
    if (kernel >= 16) {
        ResultHeader *const results = parameter<ResultHeader *>(node, 2);
        Detection *const detections = parameter<Detection *>(node, 3);
        const ColumnParams columns = parameter<ColumnParams>(node, 4);
        float *const rows = parameter<float *>(node, 5);
        if (kernel == 16 && node.grid.y != 1) {
            cuda_on_host::fail("several groups on a kernel for a single group");
        }
        cuda_on_host::launch(node.grid, threads, 1, seed, [&] {
            (kernel == 16 ? publish_columns : publish_columns_batch)(workspace, stride, results,
                                                                     detections, columns, rows);
        });
        return;
    }
    const bool is_batch = kernel >= 11;
    if (!is_batch && node.grid.y != 1) {
        cuda_on_host::fail("several groups on a kernel for a single group");
    }
    switch (kernel) {
    case 8:
    case 11:
        cuda_on_host::launch(node.grid, threads, 3, seed,
                             [=] { (is_batch ? map_batch : map)(workspace, stride); });
        break;
    case 9:
    case 12: run_reduce(is_batch ? reduce_batch : reduce, node, seed); break;
    default: {
        ResultHeader *const results = parameter<ResultHeader *>(node, 2);
        Detection *const detections = parameter<Detection *>(node, 3);
        cuda_on_host::launch(node.grid, threads, 1, seed, [=] {
            (is_batch ? publish_batch : publish)(workspace, stride, results, detections);
        });
    }
    }
}

EXPORT Result cuGraphCreate(Graph **graph, uint32_t) {
    *graph = new Graph();
    return DONE;
}
EXPORT Result cuGraphDestroy(Graph *graph) {
    delete graph;
    return DONE;
}
// Adds a node that depends on the one before: graphs are sequences.
static Result add_node(Node **node, Graph *graph, Node *const *before, size_t count,
                       std::unique_ptr<Node> made) {
    made->follows = count == 1 && !graph->nodes.empty() && *before == graph->nodes.back().get();
    if (count != 0 && !made->follows) {
        return INVALID_VALUE;
    }
    *node = made.get();
    graph->nodes.push_back(std::move(made));
    return DONE;
}
EXPORT Result cuGraphAddKernelNode(Node **node, Graph *graph, Node *const *before, size_t count,
                                   const NodeParameters *parameters) {
    std::unique_ptr<Node> made(new Node());
    return fill(*made, *parameters) ? add_node(node, graph, before, count, std::move(made))
                                    : INVALID_VALUE;
}
EXPORT Result cuGraphAddMemsetNode(Node **node, Graph *graph, Node *const *before, size_t count,
                                   const MemsetParameters *parameters, Context *) {
    const MemsetParameters &to = *parameters;
    if (to.element_bytes != 1 || to.width == 0 || to.height == 0 ||
        (to.height > 1 && to.pitch < to.width) ||
        !on_device(to.address, (to.height - 1) * to.pitch + to.width)) {
        return INVALID_VALUE;
    }
    std::unique_ptr<Node> made(new Node());
    made->memset = to;
    return add_node(node, graph, before, count, std::move(made));
}
// Between the last two nodes, with programmatic dependent launch.
EXPORT Result cuGraphAddDependencies_v2(Graph *graph, Node *const *from, Node *const *to,
                                        const uint8_t (*edges)[8], size_t count) {
    static const uint8_t programmatic[8] = {1, 0, 1};
    const size_t length = graph->nodes.size();
    if (count != 1 || length < 2 || graph->nodes[length - 2].get() != *from ||
        graph->nodes[length - 1].get() != *to ||
        memcmp(edges, programmatic, sizeof programmatic) != 0) {
        return INVALID_VALUE;
    }
    (*to)->follows = true;
    return DONE;
}
EXPORT Result cuGraphInstantiateWithFlags(Executable **exec, Graph *graph, uint64_t) {
    for (size_t i = 1; i < graph->nodes.size(); i++) {
        if (!graph->nodes[i]->follows) {
            return INVALID_VALUE;
        }
    }
    *exec = new Executable();
    for (const auto &node : graph->nodes) {
        (*exec)->nodes.push_back(*node);
        (*exec)->from.push_back(node.get());
    }
    return DONE;
}
EXPORT Result cuGraphExecDestroy(Executable *exec) {
    delete exec;
    return DONE;
}
EXPORT Result cuGraphExecKernelNodeSetParams(Executable *exec, Node *node,
                                             const NodeParameters *parameters) {
    for (size_t i = 0; i < exec->from.size(); i++) {
        if (exec->from[i] == node) {
            return fill(exec->nodes[i], *parameters) ? DONE : INVALID_VALUE;
        }
    }
    return INVALID_VALUE;
}
EXPORT Result cuGraphLaunch(Executable *exec, Stream *stream) {
    static thread_local uint64_t seed = 1;
    {
        std::lock_guard<std::mutex> guard(lock);
        stream = stream_of(stream);
        if (streams.count(stream) == 0) {
            return INVALID_HANDLE;
        }
        finish(*stream);
        launch_priority = stream->priority;
    }
    for (const Node &node : exec->nodes) {
        run(node, seed++);
    }
    return DONE;
}
EXPORT Result cuLaunchKernel(const Function *function, uint32_t grid_x, uint32_t grid_y,
                             uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                             uint32_t shared_bytes, Stream *stream, void **parameters,
                             void **extra) {
    static thread_local uint64_t seed = 1;
    const NodeParameters given{function, grid_x,  grid_y,       grid_z,     block_x,
                               block_y,  block_z, shared_bytes, parameters, extra};
    Node node;
    if (!fill(node, given)) {
        return INVALID_VALUE;
    }
    if (is_resample(*function) &&
        !is_accessible(parameter<ResampleParams>(node, 0), grid_z,
                       uint32_t(atoi(function->name + strlen("resample_"))) / 8)) {
        return ILLEGAL_ADDRESS;
    }
    {
        std::lock_guard<std::mutex> guard(lock);
        stream = stream_of(stream);
        if (streams.count(stream) == 0) {
            return INVALID_HANDLE;
        }
        finish(*stream);
    }
    run(node, seed++);
    return DONE;
}
