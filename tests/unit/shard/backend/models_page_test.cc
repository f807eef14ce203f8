// docs/models.md: what each model type has, from the code, and how it is checked, from the recipes
// of tests/oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/cuda/program_check.h"
#include "shard/model/architectures/architectures.h"
#include "shard/model/features.h"
#include "shard/model/model.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The string at the path of keys; empty if there is none.
std::string TextAt(const json::value& value, std::initializer_list<std::string_view> keys) {
  const json::value* found = &value;
  for (const std::string_view key : keys) {
    const json::object* object = found->if_object();
    found = object == nullptr ? nullptr : object->if_contains({key.data(), key.size()});
    if (found == nullptr) return "";
  }
  const json::string* text = found->if_string();
  return text == nullptr ? "" : std::string(text->data(), text->size());
}

// A checkpoint of tests/oracle.
struct Variant {
  std::string name;  // TYPE-VARIANT
  std::string type;  // `model_type` of config.json
  std::string text_type;
  std::string quantization;
  std::string todo;        // why it is not served
  bool two_ranks = false;  // checked on
  Model model;             // if it is served

  bool Served() const { return FindArchitecture(type) != nullptr && todo.empty(); }
  std::string Code() const { return "`" + name.substr(name.find('-') + 1) + "`"; }
};

std::vector<Variant> ReadVariants() {
  std::vector<Variant> variants;
  for (const auto& entry : fs::directory_iterator(testing_support::ModelCheckpoints())) {
    if (!entry.is_directory()) continue;
    const json::value config = json::parse(ReadFile(entry.path() / "config.json"));
    Variant variant;
    variant.name = entry.path().filename();
    variant.type = TextAt(config, {"model_type"});
    variant.text_type = TextAt(config, {"text_config", "model_type"});
    if (config.as_object().contains("quantization_config")) {
      variant.quantization = TextAt(config, {"quantization_config", "quant_method"});
      if (variant.quantization.empty()) variant.quantization = "bitsandbytes";  // an old file
    }
    const json::value recipe = json::parse(ReadFile(entry.path() / "test.json"));
    variant.todo = TextAt(recipe, {"todo"});
    variant.two_ranks = recipe.at("world2").as_bool();
    if (variant.Served()) {
      auto model = Model::Open({entry.path(), DType::kFloat32, Device(), 0, 1});
      EXPECT_TRUE(model.ok()) << variant.name << ": " << model.status();
      if (model.ok()) variant.model = *std::move(model);
    }
    variants.push_back(std::move(variant));
  }
  std::sort(variants.begin(), variants.end(),
            [](const Variant& a, const Variant& b) { return a.name < b.name; });
  return variants;
}

using VariantList = std::vector<const Variant*>;

VariantList OfType(const std::vector<Variant>& variants, std::string_view type) {
  VariantList found;
  for (const Variant& variant : variants) {
    if (variant.type == type && variant.Served()) found.push_back(&variant);
  }
  return found;
}

// ---- the table of features ----

// The numbered reasons below a table.
class Notes {
 public:
  std::string Number(const std::string& text) {
    const auto found = std::find(texts_.begin(), texts_.end(), text);
    const auto number = found - texts_.begin() + 1;
    if (found == texts_.end()) texts_.push_back(text);
    return std::to_string(number);
  }
  std::string Text() const {
    std::string text;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      text += std::to_string(i + 1) + ". " + texts_[i] + "\n";
    }
    return text;
  }

 private:
  std::vector<std::string> texts_;
};

struct Column {
  std::string name;
  // Why the model does not have it; empty: it has.
  std::function<std::string(const Model&)> why_not;
};

std::string CpuReason(const Model& model, Quantization quantization) {
  const CpuTypes types{DType::kFloat32, quantization, KvType::kAuto, "auto"};
  constexpr std::uint32_t kBlockSize = 16;
  return Message(CheckCpuBackend(model.program, types, kBlockSize));
}

std::vector<Column> Columns() {
  std::vector<Column> columns;
  for (const FeatureText& text : kFeatures) {
    columns.push_back({std::string(text.name), [feature = text.feature](const Model& model) {
                         return std::string(WhyNot(feature, model.program));
                       }});
  }
  columns.push_back({"backend reference", [](const Model&) { return std::string(); }});
  columns.push_back(
      {"backend cpu", [](const Model& model) { return CpuReason(model, Quantization::kNone); }});
  columns.push_back({"int8 weights (cpu)",
                     [](const Model& model) { return CpuReason(model, Quantization::kInt8); }});
  columns.push_back({"int4 weights (cpu)",
                     [](const Model& model) { return CpuReason(model, Quantization::kInt4); }});
  columns.push_back({"backend cuda", [](const Model& model) {
                       return Message(cuda::CheckCudaBackend(model.program, DType::kBFloat16));
                     }});
  return columns;
}

// "yes", "no" or, where the variants of a type differ, "in part"; with the numbers of the reasons.
std::string Cell(const VariantList& variants, const Column& column, Notes& notes) {
  std::set<std::string> reasons;
  std::size_t without = 0;
  for (const Variant* variant : variants) {
    const std::string reason = column.why_not(variant->model);
    if (reason.empty()) continue;
    ++without;
    reasons.insert(reason);
  }
  if (without == 0) return "yes";
  std::string numbers;
  for (const std::string& reason : reasons) {
    numbers += (numbers.empty() ? "" : ", ") + notes.Number(reason);
  }
  return (without == variants.size() ? "no (" : "in part (") + numbers + ")";
}

std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + cell + " |";
  return row + "\n";
}

std::string Head(const std::vector<std::string>& cells) {
  std::string line = Row(cells) + "|";
  for (std::size_t i = 0; i < cells.size(); ++i) line += "---|";
  return line + "\n";
}

std::string FeatureTable(const std::vector<Variant>& variants) {
  const std::vector<Column> columns = Columns();
  std::vector<std::string> names = {"`model_type`"};
  for (const Column& column : columns) names.push_back(column.name);
  std::string table = Head(names);
  Notes notes;
  for (const ModelType& type : ModelTypes()) {
    std::vector<std::string> cells = {"`" + std::string(type.name) + "`"};
    for (const Column& column : columns) {
      cells.push_back(Cell(OfType(variants, type.name), column, notes));
    }
    table += Row(cells);
  }
  return table + "\n" + notes.Text();
}

// ---- the table of types ----

// The `quant_method` of each variant that is quantised.
std::string Quantized(const VariantList& variants) {
  std::set<std::string> methods;
  for (const Variant* variant : variants) {
    if (!variant->quantization.empty()) methods.insert(variant->quantization);
  }
  std::string names;
  for (const std::string& method : methods) names += (names.empty() ? "`" : ", `") + method + "`";
  return names;
}

std::string TypeTable(const std::vector<Variant>& variants) {
  std::string table = Head({"`model_type`", "Models", "Text model inside", "Two ranks",
                            "Quantised files that are checked", "Variants that are checked"});
  for (const ModelType& type : ModelTypes()) {
    const VariantList own = OfType(variants, type.name);
    std::string names, inside;
    for (const Variant* variant : own) {
      names += (names.empty() ? "" : ", ") + variant->Code();
      if (!variant->text_type.empty()) inside = "`" + variant->text_type + "`";
    }
    const bool two_ranks = std::all_of(own.begin(), own.end(),
                                       [](const Variant* variant) { return variant->two_ranks; });
    table += Row({"`" + std::string(type.name) + "`", std::string(type.models), inside,
                  two_ranks ? "checked" : "", Quantized(own), names});
  }
  return table;
}

std::string TodoTable(const std::vector<Variant>& variants) {
  std::string rows;
  for (const Variant& variant : variants) {
    if (variant.Served()) continue;
    const bool known = FindArchitecture(variant.type) != nullptr;
    rows += Row({"`" + variant.name + "`", known ? variant.todo : "the model type"});
  }
  if (rows.empty()) return "None.\n";
  return Head({"Variant", "What is not served yet"}) + rows;
}

constexpr char kBegin[] =
    R"(# Model types

<!-- Generated from shard/model, the backends and tests/oracle. After a change:
     PENSTOCK_UPDATE_DOCS=1 build/tests/penstock_models_page_test -->

The `model_type` in `config.json` says which type a model has. Another type is refused, with the
name of the nearest one; [`--engine transformers`](how-to/transformers.md) serves the others. Keys
of transformers 4 and 5 are read. A type with a text model inside is served as text: the tensors of
its other parts are skipped. Any other tensor that the text model does not need is an error. Every
type loads every quantised format ([Quantised checkpoints](quantised-checkpoints.md)).

)";

constexpr char kFeatureText[] = R"(
## What each type has

A number names the reason for a "no", below the table; the shard gives the same reason when it
refuses an option. "In part" means that some of the checked variants have it. Backend cuda has
neither the padded KV layout nor contrastive search; the reference backend runs instead.

A world size must divide the query heads, the columns of MLPs and shared experts, and the value
heads of gated delta nets. It must divide the columns of an expert or the number of experts. It must
divide the K/V heads and the key heads of gated delta nets, or be a multiple of them.

)";

constexpr char kRopeText[] = R"(
## RoPE

RoPE of these types is served: default, linear, dynamic with and without `alpha`, llama3, yarn,
longrope and proportional. Two of them depend on the length of the text, past the original length:

* longrope has other factors for longer texts. A text that passes the length is preempted and
  computed again from its first token, as in transformers. Prefixes of short and of long texts are
  cached apart.
* dynamic has frequencies of its own for each longer text. A prompt has those of its whole length,
  in chunks as well. A later token has those of the text that ends with it. The same holds after a
  preemption, so the output has the same bits. Longer prompts find only cached prefixes of prompts
  of the same length. transformers computes a prompt in chunks with the length of each chunk's end.
)";

constexpr char kCheckText[] = R"(
## How it is checked

A variant is a tiny checkpoint with random weights, made by its recipe in `tests/oracle/recipes`.
`penstock_shard_models_test` compares its logits with those of HF transformers on the backends
reference and cpu: the whole prompt, chunks of 7 tokens, 32 decode steps, and both on two ranks. The
bound is 1e-4, or three times what transformers' own ways differ. Greedy tokens must be equal unless
the two best logits are close.

`penstock_shard_model_bits_test` runs each variant alone and under load. The output must have the
same bits in a batch, after a prefix hit or a preemption, with chunks of any size, after drafts,
beside a contrastive search and in padded KV rows. Two ranks have the same bits alone and under
load. `penstock_shard_bits_test` and `penstock_shard_padded_test` go deeper, with models of a few
types.

Variants that have goldens and are not served yet:

)";

std::string Page() {
  const std::vector<Variant> variants = ReadVariants();
  return kBegin + TypeTable(variants) + kFeatureText + FeatureTable(variants) + kRopeText +
         kCheckText + TodoTable(variants);
}

TEST(ModelsPage, IsUpToDate) {
  const std::string path = testing_support::SourcePath("docs/models.md");
  const std::string page = Page();
  if (std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr) std::ofstream(path) << page;
  EXPECT_TRUE(ReadFile(path) == page)
      << path << " is stale. Run: PENSTOCK_UPDATE_DOCS=1 build/tests/penstock_models_page_test";
}

TEST(ModelsPage, EachTypeHasAVariantThatIsChecked) {
  const std::vector<Variant> variants = ReadVariants();
  for (const ModelType& type : ModelTypes()) {
    EXPECT_FALSE(OfType(variants, type.name).empty()) << type.name;
  }
}

TEST(ModelsPage, TypesAreInTheOrderOfTheirNames) {
  const auto types = ModelTypes();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

}  // namespace
}  // namespace penstock::shard
