// Public checkpoint layouts read into a model's parameters: every value where it belongs,
// everything that is wrong refused with its reason.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/formats/stand_in_files.h"
#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/formats/model_archive.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/tensor/torch_zip_fixture.h"
#include "wam/train/base_model.h"

namespace wam::formats_test {
namespace {

namespace fs = std::filesystem;

const StandIn& model() {
  static const StandIn stand_in;
  return stand_in;
}

// What arrives in the parameters.
Tensors loaded(const fs::path& source, const std::string& base = "") {
  train::TrainConfig config = model().config;
  config.model.base = base;
  Tensors result;
  train::load_transformer(config, source.string(), *model().plan.step.params,
                          [&](const Param&, const ParamPart& part, const HostTensor& value) {
                            result[part.name] = value.clone();
                          });
  return result;
}

Tensors loaded_encoder(const fs::path& source, ModelPart part) {
  const train::EncoderPrograms& encoders = model().plan.encoders;
  const ParamSet& set = part == ModelPart::kVae    ? *encoders.vae
                        : part == ModelPart::kText ? *encoders.text
                                                   : *encoders.clip;
  Tensors result;
  load_weights(set, *open_model(source, part), train::encoder_load_options(model().config, part),
               [&](const Param&, const ParamPart& p, const HostTensor& value) {
                 result[p.name] = value.clone();
               });
  return result;
}

// Equal, or within `bound` of the largest value.
void expect_same(const Tensors& got, const Tensors& want, double bound = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    ASSERT_EQ(got.at(name).shape(), tensor.shape()) << name;
    const auto a = got.at(name).as<float>(), b = tensor.as<float>();
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], bound * (1 + std::abs(b[i]))) << name << " " << i;
  }
}

void expect_encoders(const fs::path& source) {
  expect_same(loaded_encoder(source, ModelPart::kVae), model().vae);
  expect_same(loaded_encoder(source, ModelPart::kText), model().text);
  expect_same(loaded_encoder(source, ModelPart::kClip), model().clip);
}

// The message of the refusal; empty if there was none.
std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_refusal(const std::function<void()>& act, const std::vector<std::string>& parts) {
  const std::string text = refusal(act);
  EXPECT_NE(text, "") << parts.front();
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Layouts, WanBase) {
  const TempDir folder;
  write_wan_base(folder / "Wan2.2-TI2V-5B", model());
  const CheckpointFiles files = find_checkpoint(folder / "Wan2.2-TI2V-5B");
  EXPECT_EQ(files.kind, CheckpointKind::kWanBase);
  EXPECT_EQ(files.parts.size(), 4U);
  train::TrainConfig config = model().config;
  config.model.base = (folder / "Wan2.2-TI2V-5B").string();
  config.text_encoder.tokenizer.clear();
  config = train::with_base(config);
  EXPECT_TRUE(config.text_encoder.tokenizer.ends_with("google/umt5-xxl/spiece.model"));
  Tensors got;
  const LoadReport report =
      train::load_transformer(config, config.model.weights, *model().plan.step.params,
                              [&](const Param&, const ParamPart& part, const HostTensor& value) {
                                got[part.name] = value.clone();
                              });
  EXPECT_EQ(report.loaded + static_cast<int64_t>(report.initialised.size()),
            static_cast<int64_t>(model().dit.size()));
  EXPECT_GT(report.initialised.size(), 10U);
  for (const std::string& name : report.initialised) got[name] = model().dit.at(name);
  expect_same(got, model().dit);
  expect_same(loaded_encoder(config.vae.weights, ModelPart::kVae), model().vae);
  expect_same(loaded_encoder(config.text_encoder.weights, ModelPart::kText), model().text);
  const Tensors clip = to(to(model().clip, DType::kF16), DType::kF32);
  expect_same(loaded_encoder(config.clip.weights, ModelPart::kClip), clip);
}

TEST(Layouts, BaseWithoutClipAsksForIt) {
  const TempDir folder;
  write_wan_base(folder.path(), model());
  fs::remove(folder / "models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth");
  train::TrainConfig config = model().config;
  config.model.base = folder.path().string();
  expect_refusal([&] { train::with_base(config); },
                 {"holds no clip", "clip.weights", "Wan2.1-I2V-14B"});
}

TEST(Layouts, DreamZero) {
  const TempDir folder;
  write_dreamzero(folder.path(), model());
  const CheckpointFiles files = find_checkpoint(folder.path());
  EXPECT_EQ(files.kind, CheckpointKind::kDreamZero);
  EXPECT_FALSE(files.metadata_json.empty());
  expect_same(loaded(folder.path()), model().dit);
  expect_encoders(folder.path());
}

TEST(Layouts, RlinfFullWeights) {
  const TempDir folder;
  write_rlinf(folder.path(), model());
  EXPECT_EQ(find_checkpoint(folder.path()).kind, CheckpointKind::kRlinf);
  expect_same(loaded(folder.path()), model().dit);
  expect_encoders(folder.path());
}

TEST(Lora, InsideADreamZeroCheckpoint) {
  const TempDir folder;
  const Lora lora = make_lora(model().dit);
  write_dreamzero(folder.path(), model(), &lora);
  expect_same(loaded(folder.path()), merged(model().dit, lora), 1e-6);
  expect_encoders(folder.path());
}

TEST(Lora, AloneOnItsBase) {
  const TempDir folder;
  const Lora lora = make_lora(model().dit);
  write_dreamzero(folder / "base", model());
  write_dreamzero_lora(folder / "lora", model(), lora);
  EXPECT_EQ(find_checkpoint(folder / "lora").kind, CheckpointKind::kDreamZeroLora);
  expect_same(loaded(folder / "lora", (folder / "base").string()), merged(model().dit, lora), 1e-6);
  expect_refusal([&] { loaded(folder / "lora"); }, {"LoRA adapter without its base", "model.base"});
}

TEST(Lora, PeftAdapter) {
  const TempDir folder;
  const Lora lora = make_lora(model().dit);
  write_rlinf(folder / "base", model());
  write_peft(folder / "adapter", lora);
  expect_same(loaded(folder / "adapter", (folder / "base").string()), merged(model().dit, lora),
              1e-6);
  // The base that its config names.
  write_peft(
      folder / "named", lora,
      peft_config(lora, R"(, "base_model_name_or_path": ")" + (folder / "base").string() + "\""));
  expect_same(loaded(folder / "named"), merged(model().dit, lora), 1e-6);
}

TEST(Lora, VariantsAreRefused) {
  const TempDir folder;
  const Lora lora = make_lora(model().dit);
  write_dreamzero(folder / "base", model());
  int n = 0;
  for (const auto& [more, reason] : std::vector<std::pair<std::string, std::string>>{
           {R"(, "use_dora": true)", "use_dora"},
           {R"(, "alpha_pattern": {"q": 3})", "alpha_pattern"},
           {R"(, "peft_type": "IA3")", "another kind"},
           {R"(, "r": 0)", "out of range"}}) {
    const fs::path adapter = folder / ("adapter" + std::to_string(n++));
    write_peft(adapter, lora, peft_config(lora, more));
    expect_refusal([&] { loaded(adapter, (folder / "base").string()); }, {reason});
  }
}

TEST(Lora, AnotherBaseIsRefused) {
  const TempDir folder;
  const Lora lora = make_lora(model().dit);
  write_dreamzero(folder / "base", model());
  write_dreamzero(folder / "other", StandIn(2));
  const std::string fingerprint = model_fingerprint(*open_model(folder / "base", ModelPart::kDit));
  write_dreamzero_lora(folder / "lora", model(), lora, {{"base_fingerprint", fingerprint}});
  expect_same(loaded(folder / "lora", (folder / "base").string()), merged(model().dit, lora), 1e-6);
  expect_refusal([&] { loaded(folder / "lora", (folder / "other").string()); },
                 {"another base", fingerprint});
  expect_refusal([&] { loaded(folder / "lora", (folder / "lora").string()); },
                 {"LoRA adapter without"});
}

TEST(Lora, FactorsThatDoNotFit) {
  const TempDir folder;
  write_dreamzero(folder / "base", model());
  const auto refused = [&](const char* name, const std::function<void(Lora&)>& spoil,
                           const std::string& reason) {
    Lora lora = make_lora(model().dit);
    spoil(lora);
    Tensors all;
    for (const auto& [weight, a] : lora.a)
      all[weight.substr(0, weight.size() - 7) + ".lora_A.weight"] = a;
    for (const auto& [weight, b] : lora.b)
      all[weight.substr(0, weight.size() - 7) + ".lora_B.weight"] = b;
    fs::create_directories(folder / name);
    write_safetensors(folder / name / "adapter_model.safetensors", all);
    write_file_atomic(folder / name / "adapter_config.json", peft_config(lora));
    expect_refusal([&] { loaded(folder / name, (folder / "base").string()); }, {reason});
  };
  const std::string q = "blocks.0.self_attn.q.weight";
  refused(
      "no_b", [&](Lora& l) { l.b.erase(q); }, "no lora_B");
  refused(
      "no_a", [&](Lora& l) { l.a.erase(q); }, "no lora_A");
  refused(
      "rank",
      [&](Lora& l) {
        l.a[q] = HostTensor::zeros(DType::kF32, Shape{3, 32});
      },
      "does not fit its lora_B");
  refused(
      "width",
      [&](Lora& l) {
        l.a[q] = HostTensor::zeros(DType::kF32, Shape{2, 31});
      },
      "does not fit its base");
  refused(
      "stranger",
      [&](Lora& l) {
        l.a["blocks.7.q.weight"] = HostTensor::zeros(DType::kF32, Shape{2, 32});
        l.b["blocks.7.q.weight"] = HostTensor::zeros(DType::kF32, Shape{32, 2});
      },
      "base does not have");
}

TEST(Refused, TensorsMissingExtraMisshapen) {
  const TempDir folder;
  int n = 0;
  const auto refused = [&](const std::function<void(Tensors&)>& spoil,
                           const std::vector<std::string>& parts) {
    StandIn spoilt = model();
    spoil(spoilt.dit);
    const fs::path place = folder / std::to_string(n++);
    write_dreamzero(place, spoilt);
    expect_refusal([&] { loaded(place); }, parts);
  };
  refused([](Tensors& t) { t.erase("blocks.1.ffn.0.weight"); },
          {"1 missing", "blocks.1.ffn.0.weight"});
  refused([](Tensors& t) { t.erase("action_encoder.W1.W"); }, {"1 missing", "action_encoder.W1.W"});
  refused([](Tensors& t) { t["blocks.9.extra"] = t.at("head.head.bias"); },
          {"1 unexpected", "blocks.9.extra"});
  refused([](Tensors& t) { t["head.head.bias"] = HostTensor::zeros(DType::kF32, Shape{3}); },
          {"1 misshapen", "head.head.bias", "[3]"});
  refused([](Tensors& t) { t["module.head.head.bias"] = t.at("head.head.bias"); },
          {"two names mean the same tensor"});
}

// A byte of a file's middle changed, or the file cut.
void spoil_file(const fs::path& path, bool cut) {
  std::string bytes = read_text_file(path);
  if (cut) {
    bytes.resize(bytes.size() / 2);
  } else {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  }
  write_file_atomic(path, bytes);
}

TEST(Refused, DamagedFiles) {
  const TempDir folder;
  write_wan_base(folder.path(), model());
  const fs::path t5 = folder / "models_t5_umt5-xxl-enc-bf16.pth";
  spoil_file(t5, false);
  expect_refusal([&] { loaded_encoder(t5, ModelPart::kText); },
                 {t5.filename().string(), "checksum"});
  spoil_file(t5, true);
  expect_refusal([&] { loaded_encoder(t5, ModelPart::kText); }, {t5.filename().string()});
  spoil_file(folder / "diffusion_pytorch_model-00001-of-00002.safetensors", true);
  expect_refusal([&] { loaded(folder.path()); }, {"diffusion_pytorch_model-00001"});
}

TEST(Refused, PickleWithCode) {
  const TempDir folder;
  fs::create_directories(folder / "actor" / "model_state_dict");
  const std::string hostile =
      PickleAssembler().global("os", "system").text("true").op("\x85R").stop();
  write_file_atomic(folder / "actor" / "model_state_dict" / "full_weights.pt",
                    zip_bytes(torch_entries(hostile, {})));
  expect_refusal([&] { loaded(folder.path()); }, {"os", "system"});
  write_file_atomic(folder / "legacy.pt",
                    std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 16));
  expect_refusal([&] { loaded(folder / "legacy.pt"); }, {"bare pickle"});
}

TEST(Refused, NoCheckpoint) {
  const TempDir folder;
  expect_refusal([&] { find_checkpoint(folder.path()); },
                 {"holds no checkpoint", "model.safetensors"});
  expect_refusal([&] { find_checkpoint(folder / "absent"); }, {"no checkpoint of this name"});
  write_safetensors(folder / "strange.safetensors",
                    {{"a", HostTensor::zeros(DType::kF32, Shape{1})}});
  expect_refusal([&] { find_checkpoint(folder / "strange.safetensors"); },
                 {"no model that is known"});
}

}  // namespace
}  // namespace wam::formats_test
