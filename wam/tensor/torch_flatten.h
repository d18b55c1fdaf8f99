// Names for the tensors in the nested containers of a torch pickle.
#pragma once

#include <map>
#include <string>

#include "wam/tensor/pickle.h"

namespace wam {

struct FlatPickle {
  std::map<std::string, const PickleTensor*> tensors;  // into the document
  std::map<std::string, std::string> metadata;
};

// As open_torch_zip states. Throws DataError with `where` for a key that is missing, keys that are
// neither text nor integer, names that come out twice, nesting deeper than 64 (a container in
// itself), and more leaves than any checkpoint has.
FlatPickle flatten_pickle(const PickleDocument& document, const std::string& key,
                          const std::string& where);

}  // namespace wam
