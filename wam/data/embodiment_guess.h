// A first version of a robot's description from what a dataset says of itself, and what of it is
// a guess.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/embodiment.h"

namespace wam::data {

struct GuessOptions {
  int64_t num_blocks = 4;  // K: blocks that a window of an episode of middling length must hold
  bool read_data = true;   // look at the first episode: cameras that are there, switches
};

struct EmbodimentGuess {
  Embodiment embodiment;           // valid
  std::vector<std::string> notes;  // "views: ...; why", one a decision, for the user to check
};

// Throws DataError when there is no camera or no action that could be used.
EmbodimentGuess guess_embodiment(const Dataset& dataset, const GuessOptions& options = {});

// A file that parse_embodiment's users read: the notes as comments above the block `embodiment`.
std::string guess_file(const EmbodimentGuess& guess, const std::string& dataset);

}  // namespace wam::data
