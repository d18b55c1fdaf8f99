// Messages that the readers of archives share.
#pragma once

#include <string>

#include "wam/tensor/archive.h"

namespace wam {

// Throws the DataError of load() for a name that is not there.
[[noreturn]] void throw_no_such_tensor(const TensorArchive& archive, const std::string& name);

}  // namespace wam
