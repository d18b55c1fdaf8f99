// The text encoder, with padding.
#include "tests/golden/encoder_setup.h"
#include "wam/models/umt5.h"

namespace wam {
namespace {

using golden::File;
using golden::relative;

Umt5Config config_of(const File& file) {
  const nlohmann::json j = file.json("config");
  return {.vocab = j.at("vocab"),
          .dim = j.at("dim"),
          .dim_attn = j.at("dim_attn"),
          .dim_ffn = j.at("dim_ffn"),
          .heads = j.at("num_heads"),
          .layers = j.at("num_layers"),
          .num_buckets = j.at("num_buckets")};
}

void check_file(const File& file) {
  const Umt5Config config = config_of(file);
  const HostTensor ids = file.load("in.ids").to(DType::kI32);
  HostTensor mask(DType::kF32, ids.shape());
  const HostTensor stored = file.load("in.mask").to(DType::kI32);
  for (size_t i = 0; i < mask.as<float>().size(); ++i) {
    mask.as<float>()[i] = static_cast<float>(stored.as<int32_t>()[i]);
  }
  golden::EncoderRun run(file, [&](Graph& graph, ParamUser& params) {
    const Umt5Output out = build_umt5(params, config, graph.add_input("ids", ids.type()),
                                      graph.add_input("mask", mask.type()));
    graph.add_output("hidden", out.hidden);
    graph.add_output("prompt", out.prompt);
  });
  run.write("ids", ids);
  run.write("mask", mask);
  run.run();
  EXPECT_LE(relative(run.read("hidden"), file.f32("out.hidden"), "hidden"), golden::bound());
  const HostTensor prompt = run.read("prompt").to(DType::kF32);
  EXPECT_LE(relative(prompt, file.f32("out.prompt_embedding"), "prompt_embedding"), golden::bound());
  for (int64_t i = 0; i < prompt.num_elements(); ++i) {
    if (mask.as<float>()[static_cast<size_t>(i / config.dim)] == 0) {
      ASSERT_EQ(prompt.as<float>()[static_cast<size_t>(i)], 0.0f) << i;
    }
  }
}

TEST(Umt5Golden, HiddenStatesAndPromptEmbedding) {
  const auto paths = golden::files("umt5");
  if (paths.empty()) GTEST_SKIP() << "no umt5*.safetensors in WAM_GOLDEN_DIR";
  for (const auto& path : paths) {
    std::printf("%s\n", path.filename().c_str());
    check_file(File(path));
  }
}

}  // namespace
}  // namespace wam
