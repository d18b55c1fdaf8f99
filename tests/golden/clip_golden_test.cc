// Preprocessing and the vision tower.
#include "tests/golden/encoder_setup.h"
#include "wam/models/clip.h"

namespace wam {
namespace {

using golden::File;
using golden::relative;

void check_file(const File& file) {
  const nlohmann::json j = file.json("config");
  const ClipConfig config{.image_size = j.at("image_size"),
                          .patch_size = j.at("patch_size"),
                          .dim = j.at("dim"),
                          .mlp_ratio = j.at("mlp_ratio"),
                          .heads = j.at("num_heads"),
                          .layers = j.at("num_layers")};
  const HostTensor image = golden::permuted(file.load("in.image"), {0, 2, 3, 1});
  golden::EncoderRun run(file, [&](Graph& graph, ParamUser& params) {
    const ValueId pixels =
        clip_preprocess(params.builder(), config, graph.add_input("image", image.type()));
    graph.add_output("pixels", pixels);
    graph.add_output("tokens", build_clip(params, config, pixels));
  });
  run.write("image", image);
  run.run();
  EXPECT_LE(relative(golden::permuted(run.read("pixels"), {0, 3, 1, 2}), file.f32("out.pixels"),
                     "pixels"),
            golden::bound());
  EXPECT_LE(relative(run.read("tokens"), file.f32("out.tokens"), "tokens"), golden::bound());
}

TEST(ClipGolden, PixelsAndTokens) {
  const auto paths = golden::files("clip");
  if (paths.empty()) GTEST_SKIP() << "no clip*.safetensors in WAM_GOLDEN_DIR";
  for (const auto& path : paths) {
    std::printf("%s\n", path.filename().c_str());
    check_file(File(path));
  }
}

}  // namespace
}  // namespace wam
