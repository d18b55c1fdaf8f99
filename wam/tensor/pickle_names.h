// The classes and the opcodes that read_pickle knows.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "wam/tensor/dtype.h"

namespace wam {

enum class Global : int64_t { kOrderedDict, kRebuildTensor, kRebuildParameter, kStorage };

struct AllowedGlobal {
  std::string_view name;
  Global what;
  DType dtype = DType::kF32;
};

constexpr std::array<AllowedGlobal, 14> kAllowedGlobals = {{
    {"collections.OrderedDict", Global::kOrderedDict},
    {"torch._utils._rebuild_tensor_v2", Global::kRebuildTensor},
    {"torch._utils._rebuild_tensor", Global::kRebuildTensor},
    {"torch._utils._rebuild_parameter", Global::kRebuildParameter},
    {"torch.FloatStorage", Global::kStorage, DType::kF32},
    {"torch.BFloat16Storage", Global::kStorage, DType::kBF16},
    {"torch.HalfStorage", Global::kStorage, DType::kF16},
    {"torch.DoubleStorage", Global::kStorage, DType::kF64},
    {"torch.IntStorage", Global::kStorage, DType::kI32},
    {"torch.LongStorage", Global::kStorage, DType::kI64},
    {"torch.ShortStorage", Global::kStorage, DType::kI16},
    {"torch.CharStorage", Global::kStorage, DType::kI8},
    {"torch.ByteStorage", Global::kStorage, DType::kU8},
    {"torch.BoolStorage", Global::kStorage, DType::kBool},
}};

// Opcodes by the names of pickletools.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kEmptyDict = '}',
  kDict = 'd',
  kSetItem = 's',
  kSetItems = 'u',
  kEmptyList = ']',
  kList = 'l',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kGlobalOp = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kBuild = 'b',
  kBinPersId = 'Q',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kFrame = 0x95,
};

// What an opcode that is not read would have made.
inline std::string_view refused_object(uint8_t opcode) {
  switch (opcode) {
    case 'B':
    case 'C':
    case 'T':
    case 'U':
    case 0x8e:
      return "bytes";
    case 0x96:
      return "a bytearray";
    case 0x81:
    case 0x92:
    case 'i':
    case 'o':
      return "an object of a class";
    case 0x82:
    case 0x83:
    case 0x84:
      return "an object of the extension registry";
    case 0x8f:
    case 0x90:
    case 0x91:
      return "a set";
    case 0x97:
    case 0x98:
      return "an out-of-band buffer";
    default:
      return "an unknown or protocol 0 opcode";
  }
}

}  // namespace wam
