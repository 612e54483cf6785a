// SPDX-License-Identifier: MIT OR Apache-2.0
// Replaces the header of DeepStream's 3D components that declares their data maps. A map here has
// no data, so nvmsgconv's payloads for 3D detections are empty. The tests do not use them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#define DS_ASSERT(condition) ((void)(condition))
#define LOG_DEBUG(...) ((void)0)
#define LOG_WARNING(...) ((void)0)

namespace ds3d {
class abiRefDataMap;

enum class Code { Found, Missing };
inline bool isGood(Code code) { return code == Code::Found; }

struct TimeStamp {
    uint64_t t0;
};
constexpr const char *kTimeStamp = "timestamp";

enum class MemType { kCpu, kGpuCuda };

struct Shape {
    uint32_t numDims;
    int32_t d[8];
};
inline size_t ShapeSize(const Shape &) { std::abort(); }

// Never contains a frame, because no map has one.
struct FrameGuard {
    struct Frame {
        Shape shape() const { std::abort(); }
        void *base() const { std::abort(); }
        MemType memType() const { std::abort(); }
    };
    Frame *operator->() const { std::abort(); }
};

struct GuardDataMap {
    explicit GuardDataMap(const abiRefDataMap &) {}
    Code getData(const std::string &, TimeStamp &) const { return Code::Missing; }
    Code getGuardData(const std::string &, FrameGuard &) const { return Code::Missing; }
};
} // namespace ds3d
