// SPDX-License-Identifier: MIT OR Apache-2.0
// nvmsgconv includes this header. Everything that it needs is in ds3d/common/hpp/datamap.hpp.
#pragma once
