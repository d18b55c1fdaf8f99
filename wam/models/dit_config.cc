#include "wam/models/dit_config.h"

#include <utility>

#include "wam/base/error.h"

namespace wam {

DitConfig dit_5b() { return {}; }

DitConfig dit_14b() {
  DitConfig config;
  config.dim = 5120;
  config.layers = 40;
  config.heads = 40;
  config.ffn_dim = 13824;
  config.latent_channels = 16;
  config.y_channels = 20;
  config.latent_height = 44;
  config.latent_width = 80;
  return config;
}

void check(const DitConfig& c) {
  const std::pair<const char*, int64_t> positive[] = {{"dim", c.dim},
                                                      {"layers", c.layers},
                                                      {"heads", c.heads},
                                                      {"ffn_dim", c.ffn_dim},
                                                      {"freq_dim", c.freq_dim},
                                                      {"text_dim", c.text_dim},
                                                      {"text_len", c.text_len},
                                                      {"clip_dim", c.clip_dim},
                                                      {"clip_tokens", c.clip_tokens},
                                                      {"latent_channels", c.latent_channels},
                                                      {"action_dim", c.action_dim},
                                                      {"state_dim", c.state_dim},
                                                      {"coder_dim", c.coder_dim},
                                                      {"num_blocks", c.num_blocks},
                                                      {"actions_per_block", c.actions_per_block}};
  for (const auto& [key, value] : positive) {
    if (value <= 0) {
      throw ConfigError({.where = std::string("model.") + key,
                         .what = "size is not positive",
                         .got = std::to_string(value),
                         .expected = "at least 1",
                         .remedy = "Raise it."});
    }
  }
  if (c.dim % c.heads != 0 || c.head_dim() % 2 != 0) {
    throw ConfigError(
        {.where = "model.heads",
         .what = "heads do not divide the width into even parts",
         .got = std::to_string(c.heads) + " heads of a width of " + std::to_string(c.dim),
         .expected = "an even width for each head",
         .remedy = "Choose dim as a multiple of 2 * heads."});
  }
  if (c.latent_height < 2 || c.latent_width < 2) {
    throw ConfigError(
        {.where = "model.latent",
         .what = "latent picture is smaller than a patch",
         .got = std::to_string(c.latent_height) + " x " + std::to_string(c.latent_width),
         .expected = "at least 2 x 2",
         .remedy = "Use a larger picture or a VAE with a smaller stride."});
  }
}

}  // namespace wam
