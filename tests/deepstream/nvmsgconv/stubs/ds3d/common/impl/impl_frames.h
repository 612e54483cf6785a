// SPDX-License-Identifier: MIT OR Apache-2.0
// Included by nvmsgconv; what it uses is in ds3d/common/hpp/datamap.hpp here.
#pragma once
