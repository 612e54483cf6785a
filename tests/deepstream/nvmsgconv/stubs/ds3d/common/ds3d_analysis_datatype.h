// SPDX-License-Identifier: MIT OR Apache-2.0
// Replaces the header of DeepStream's 3D components that declares their detections. The tests make
// none.
#pragma once

struct Object2DBbox {
    float centerX, centerY, dx, dy, score;
    char labels[64];
};

struct Lidar3DBbox {
    float centerX, centerY, centerZ, dx, dy, dz, score;
    char labels[64];
};

struct FusedDetection {
    Object2DBbox obj2D;
    Lidar3DBbox obj3D;
    float score;
};
