#include <QTest>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/compute/cpu/arithmetic.h"
#include "core/compute/cpu/reference.h"
#include "tests/compute/random_data.h"
#include "tests/kernels/kernel_device.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr std::int64_t kPage = cpu::kPagePositions;

struct Shape {
    std::int32_t heads, kv_heads, k_dim, v_dim;
};
// Where a token stands: the session it belongs to and its position there.
struct Place {
    std::int32_t session, position;
};

// A pool with the pages of some sessions, mixed, for two layers; the second layer is used. What lies behind a session's last position is not
// a number (as far as it is not a code), so that a kernel that looks there is found out.
struct Pool {
    Pool(KernelDevice& device, Shape heads, cpu::KvType kv_type, const std::vector<std::int32_t>& lengths, Random& random)
        : shape(heads), type(kv_type), stride(static_cast<std::int32_t>((*std::ranges::max_element(lengths) + kPage - 1) / kPage) + 1),
          k_bytes(cpu::kv_part_bytes(type, shape.kv_heads, shape.k_dim)), layer_bytes(k_bytes + cpu::kv_part_bytes(type, shape.kv_heads, shape.v_dim)) {
        tables.assign(lengths.size() * static_cast<std::size_t>(stride), -1);
        std::vector<std::int32_t> numbers;
        for (const auto length : lengths) {
            for (std::int32_t page = 0; page * kPage < length; ++page) numbers.push_back(static_cast<std::int32_t>(numbers.size()));
        }
        for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
        content.assign(numbers.size() * static_cast<std::size_t>(layer_bytes), 0x7e00);  // two layers, two bytes each
        std::size_t used = 0;
        for (std::size_t session = 0; session < lengths.size(); ++session) {
            for (std::int32_t page = 0; page * kPage < lengths[session]; ++page) tables[session * static_cast<std::size_t>(stride) + static_cast<std::size_t>(page)] = numbers[used++];
            const auto of_session = view(static_cast<std::int32_t>(session));
            for (std::int32_t i = 0; i < lengths[session]; ++i) {
                cpu::reference::store_kv(of_session.view, random.values(shape.kv_heads * shape.k_dim).data(), random.values(shape.kv_heads * shape.v_dim).data(), i);
            }
        }
        memory = std::make_unique<Array<std::uint16_t>>(device, content);
        pages = std::make_unique<Array<std::int32_t>>(device, tables);
    }
    kernels::KvPool get() const {
        return {reinterpret_cast<std::uint8_t*>(memory->data()), static_cast<std::uint64_t>(2 * layer_bytes), static_cast<std::uint64_t>(layer_bytes),
                static_cast<std::uint64_t>(layer_bytes + k_bytes), shape.kv_heads, shape.k_dim, shape.v_dim, static_cast<std::int32_t>(type)};
    }
    // The pages of a session for the CPU.
    struct View {
        std::vector<std::byte*> k, v;
        cpu::KvView view;
    };
    View view(std::int32_t session) {
        View result;
        for (std::int32_t i = 0; i < stride; ++i) {
            const std::int32_t page = tables[static_cast<std::size_t>(session * stride + i)];
            std::byte* layer = page < 0 ? nullptr : reinterpret_cast<std::byte*>(content.data()) + (2 * page + 1) * layer_bytes;
            result.k.push_back(layer);
            result.v.push_back(layer == nullptr ? nullptr : layer + k_bytes);
        }
        result.view = {result.k.data(), result.v.data(), shape.kv_heads, shape.k_dim, shape.v_dim, type};
        return result;
    }

    // Makes the halves of a session those that another pool's codes stand for.
    void take_values_of(Pool& codes, std::int32_t session) {
        const auto to = view(session), from = codes.view(session);
        const auto half = [](std::uint16_t scale, std::int8_t code) { return cpu::float_to_half(cpu::half_to_float(scale) * static_cast<float>(code)); };
        for (std::size_t page = 0; page < to.k.size() && to.k[page] != nullptr; ++page) {
            for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
                const cpu::KvCodes k = cpu::kv_codes(from.k[page], shape.kv_heads, head, shape.k_dim), v = cpu::kv_codes(from.v[page], shape.kv_heads, head, shape.v_dim);
                for (std::int64_t i = 0; i < kPage; ++i) {
                    for (std::int64_t d = 0; d < shape.k_dim; ++d) {
                        const std::int64_t at = i * shape.k_dim + d;
                        cpu::kv_halves(to.k[page], head, shape.k_dim)[at] = half(k.scales[at / cpu::kKvBlock], k.codes[at]);
                    }
                    for (std::int64_t d = 0; d < shape.v_dim; ++d) {
                        cpu::kv_halves(to.v[page], head, shape.v_dim)[i * shape.v_dim + d] =
                            half(v.scales[cpu::value_scale_at(i, d / cpu::kKvBlock, shape.v_dim)], v.codes[cpu::value_code_at(i, d, shape.v_dim)]);
                    }
                }
            }
        }
    }

    Shape shape;
    cpu::KvType type;
    std::int32_t stride;                // pages of a session's row in the tables
    std::int64_t k_bytes, layer_bytes;  // of a page
    std::vector<std::uint16_t> content;
    std::vector<std::int32_t> tables;
    std::unique_ptr<Array<std::uint16_t>> memory;
    std::unique_ptr<Array<std::int32_t>> pages;
};

std::vector<std::int32_t> positions_of(const std::vector<Place>& places) {
    std::vector<std::int32_t> out;
    for (const Place& place : places) out.push_back(place.position);
    return out;
}
std::vector<std::int32_t> sessions_of(const std::vector<Place>& places) {
    std::vector<std::int32_t> out;
    for (const Place& place : places) out.push_back(place.session);
    return out;
}

std::vector<float> attention_on_cpu(Pool& pool, const std::vector<Place>& places, const std::vector<float>& q, std::int32_t window, float scale) {
    const Shape& s = pool.shape;
    std::vector<float> out(places.size() * static_cast<std::size_t>(s.heads * s.v_dim));
    static ThreadPool threads(4);
    for (std::size_t t = 0; t < places.size(); ++t) {
        const auto view = pool.view(places[t].session);
        const std::size_t row = t * static_cast<std::size_t>(s.heads);
        cpu::attention(threads, {s.heads, 1, places[t].position, window, scale}, q.data() + row * static_cast<std::size_t>(s.k_dim), s.heads * s.k_dim,
                       view.view, out.data() + row * static_cast<std::size_t>(s.v_dim), s.heads * s.v_dim);
    }
    return out;
}

std::vector<std::int32_t> lengths_for(const std::vector<Place>& places) {
    std::vector<std::int32_t> lengths;
    for (const Place& place : places) {
        if (static_cast<std::size_t>(place.session) >= lengths.size()) lengths.resize(static_cast<std::size_t>(place.session) + 1, 1);
        auto& length = lengths[static_cast<std::size_t>(place.session)];
        length = std::max(length, place.position + 1);
    }
    return lengths;
}

// Rows of test functions: how K and V are kept, and whether the device's matrix units, and what came after them, are left alone.
void list_types() {
    QTest::addColumn<cpu::KvType>("type");
    QTest::addColumn<bool>("plain");
    QTest::newRow("f16") << cpu::KvType::f16 << false;
    QTest::newRow("q8_0") << cpu::KvType::q8_0 << false;
    QTest::newRow("q8_0 without matrix units") << cpu::KvType::q8_0 << true;
}

struct Case {
    Shape shape;
    std::vector<Place> places;
    std::int32_t window;
    std::int32_t spare = 0;  // pages that there might be more
};

// Heads as the products leave them, and what the CPU makes of them: q and k in place, k and v in the pool's content. Variants: with norms
// or without, both layouts, all of a head turned or part of it.
struct RawHeads {
    RawHeads(KernelDevice& device, Pool& of, const std::vector<Place>& at, int variant, Random& random)
        : pool(of), places(at), norm(variant & 1), layout(variant >> 1 & 1), half(variant & 4 ? of.shape.k_dim / 4 - 3 : of.shape.k_dim / 2),
          tokens(static_cast<std::int32_t>(at.size())), q(random.values(tokens * of.shape.heads * of.shape.k_dim)),
          k(random.values(tokens * of.shape.kv_heads * of.shape.k_dim)), v(random.values(tokens * of.shape.kv_heads * of.shape.v_dim)),
          q_norm(random.values(of.shape.k_dim)), k_norm(random.values(of.shape.k_dim)), cosine(angles(std::cos)), sine(angles(std::sin)),
          q_device(device, q), k_device(device, k), v_device(device, v), q_weight(device, q_norm), k_weight(device, k_norm), cosines(device, cosine),
          sines(device, sine), positions(device, positions_of(at)), sessions(device, sessions_of(at)) {}

    std::vector<float> angles(double (*of)(double)) const {
        std::vector<float> values;
        for (std::int32_t i = 0; i < tokens * half; ++i) values.push_back(static_cast<float>(of(0.37 * i)));
        return values;
    }
    kernels::HeadArguments arguments() const {
        return {.q = q_device.data(), .k = k_device.data(), .v = v_device.data(), .q_norm = norm ? q_weight.data() : nullptr,
                .k_norm = norm ? k_weight.data() : nullptr, .epsilon = 1e-5F, .cosine = cosines.data(), .sine = sines.data(), .half = half,
                .layout = layout, .heads = pool.shape.heads, .tokens = tokens, .pool = pool.get(),
                .places = {positions.data(), sessions.data(), pool.pages->data(), pool.stride}};
    }
    void compute() {
        const Shape& shape = pool.shape;
        for (std::int32_t t = 0; t < tokens; ++t) {
            const auto prepare = [&](std::vector<float>& x, std::int32_t heads, const std::vector<float>& weight) {
                float* row = x.data() + t * heads * shape.k_dim;
                for (std::int32_t h = 0; h < heads && norm; ++h) {
                    std::vector<float> copy(row + h * shape.k_dim, row + (h + 1) * shape.k_dim);
                    cpu::reference::rms_norm(copy.data(), shape.k_dim, weight.data(), 1e-5F, row + h * shape.k_dim);
                }
                cpu::reference::rope(row, heads, shape.k_dim, cosine.data() + t * half, sine.data() + t * half, half,
                                     static_cast<cpu::RopeLayout>(layout));
            };
            prepare(q, shape.heads, q_norm);
            prepare(k, shape.kv_heads, k_norm);
            const Place place = places[static_cast<std::size_t>(t)];
            cpu::reference::store_kv(pool.view(place.session).view, k.data() + t * shape.kv_heads * shape.k_dim, v.data() + t * shape.kv_heads * shape.v_dim,
                                     place.position);
        }
    }

    Pool& pool;
    std::vector<Place> places;
    bool norm;
    int layout;
    std::int32_t half, tokens;
    std::vector<float> q, k, v, q_norm, k_norm, cosine, sine;
    Array<float> q_device, k_device, v_device, q_weight, k_weight, cosines, sines;
    Array<std::int32_t> positions, sessions;
};

}  // namespace

Q_DECLARE_METATYPE(headroom::cpu::KvType)

class TestKernelAttention : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data() { KernelDevice::list(); }

    void headsAreNormedTurnedAndStored_data() { list_types(); }
    void headsAreNormedTurnedAndStored() {
        auto& device = KernelDevice::chosen();
        QFETCH(cpu::KvType, type);
        QFETCH(bool, plain);
        const std::optional<kernels::Queue> chosen_queue = plain ? device.queue_without_matrix_units() : device.queue();
        if (!chosen_queue) QSKIP("this build has no code for cards without matrix units");
        const kernels::Queue queue = *chosen_queue;
        Random random(1);
        for (const Shape shape : {Shape{8, 2, 128, 128}, Shape{3, 3, 64, 32}, Shape{5, 1, 96, 96}, Shape{2, 1, 256, 192}}) {
            for (int variant = 0; variant < 8; ++variant) {
                const std::vector<Place> places = {{0, 0}, {1, 255}, {1, 256}, {0, 700}, {2, 31}};
                Pool pool(device, shape, type, lengths_for(places), random);
                RawHeads heads(device, pool, places, variant, random);
                REQUIRE(kernels::head_rows(queue, heads.arguments()));
                heads.compute();
                const auto problem = difference(heads.q_device.read(), heads.q);
                QVERIFY2(problem.isEmpty(), qPrintable(QString("width %1, variant %2: ").arg(shape.k_dim).arg(variant) + problem));
                QVERIFY2(same_bits(pool.memory->read(), pool.content), qPrintable(QString("width %1, variant %2: pool").arg(shape.k_dim).arg(variant)));
            }
        }
    }

    // Both at once, a token each of several sessions: the token's own K and V are seen and stored.
    void stepsAttendAsTheCpu_data() {
        list_types();
        QTest::newRow("f16 without matrix units") << cpu::KvType::f16 << true;
    }
    void stepsAttendAsTheCpu() {
        auto& device = KernelDevice::chosen();
        QFETCH(cpu::KvType, type);
        QFETCH(bool, plain);
        const std::optional<kernels::Queue> chosen_queue = plain ? device.queue_without_matrix_units() : device.queue();
        if (!chosen_queue) QSKIP("this build has no code for cards without matrix units");
        const kernels::Queue queue = *chosen_queue;
        Random random(4);
        std::vector<Case> cases = {
            {{8, 1, 128, 128}, {{0, 0}}, 0},
            {{16, 2, 128, 128}, {{0, 255}, {1, 256}, {2, 700}}, 0},
            {{4, 4, 64, 64}, {{0, 300}}, 0},
            {{6, 2, 32, 96}, {{0, 270}, {1, 3}}, 0},
            {{4, 1, 64, 64}, {{0, 600}, {1, 50}, {2, 511}}, 257},
            {{2, 1, 256, 256}, {{0, 513}}, 0},
            {{16, 1, 192, 128}, {{0, 520}, {1, 7}}, 0},
            // attention_cluster: sections of every length, whole and windows that begin and end in the same strip, the same page and another.
            {{8, 1, 128, 128}, {{0, 300}, {1, 31}, {2, 32}, {3, 0}, {4, 511}, {5, 127}}, 0},
            {{4, 1, 128, 128}, {{0, 257}, {1, 96}, {2, 416}}, 0},
            {{8, 2, 128, 128}, {{0, 1030}, {1, 64}}, 0},
            {{16, 2, 128, 128}, {{0, 700}, {1, 270}, {2, 1100}, {3, 4}}, 300},
            {{8, 1, 128, 128}, {{0, 515}, {1, 255}, {2, 256}, {3, 389}}, 7},
            // One page at most.
            {{8, 1, 128, 128}, {{0, 40}, {1, 255}, {2, 0}, {3, 31}, {4, 32}, {5, 200}}, 0},
            {{16, 2, 128, 128}, {{0, 250}, {1, 4}, {2, 100}}, 60},
            // Of which the quantized output is wanted, too: blocks of two and of four heads, and of all (codes).
            {{16, 4, 128, 128}, {{0, 33}, {1, 130}, {2, 80}, {3, 400}, {4, 2}, {5, 5}}, 0},
            {{12, 2, 128, 128}, {{0, 7}, {1, 9}, {2, 13}, {3, 300}, {4, 1}, {5, 31}, {6, 32}, {7, 2}, {8, 3}, {9, 4}, {10, 5}, {11, 6}}, 0},
        };
        // As if there were many pages: attention_long, with a page to a block, with several, and with all.
        std::vector<Case> of_many = {
            {{8, 1, 128, 128}, {{0, 2600}}, 0},
            {{6, 1, 128, 128}, {{0, 2303}, {1, 900}}, 1500},
            {{12, 4, 128, 128}, {{0, 2050}, {1, 767}, {2, 768}, {3, 31}}, 0},
            {{8, 2, 128, 128}, {{0, 2815}, {1, 0}, {2, 511}, {3, 512}, {4, 1279}, {5, 1300}}, 1100},
            {{24, 8, 128, 128}, {{0, 1100}, {1, 255}, {2, 600}}, 0},
        };
        for (Case& c : of_many) {
            c.spare = 100;
            cases.push_back(c);
        }
        if (!device.emulated()) {
            cases.push_back({{32, 4, 128, 128}, {{0, 16384}}, 0});
            cases.push_back({{32, 8, 128, 128}, {{0, 4095}, {1, 9000}, {2, 3}}, 0});
            cases.push_back({{32, 4, 128, 128}, {}, 0});
            for (std::int32_t t = 0; t < 64; ++t) cases.back().places.push_back({t, 37 * t});
        }
        int variant = 1, quantizing = 0;
        for (const Case& c : cases) {
            Pool pool(device, c.shape, type, lengths_for(c.places), random);
            RawHeads heads(device, pool, c.places, variant++ % 8, random);
            const auto size = static_cast<std::size_t>(heads.tokens * c.shape.heads * c.shape.v_dim);
            const std::int32_t max_chunks = pool.stride - 1 + c.spare;
            const Array<std::int32_t> tickets(device, std::vector<std::int32_t>(static_cast<std::size_t>(heads.tokens * c.shape.heads)));
            const Array<float> out(device, size), partials(device, static_cast<std::size_t>(heads.tokens * c.shape.heads * max_chunks * (c.shape.v_dim + 2)));
            const auto part_count = static_cast<std::size_t>(heads.tokens * c.shape.heads * max_chunks * kernels::long_part_floats(c.shape.v_dim));
            const std::vector<float> nothing(part_count, std::bit_cast<float>(0xffffffffU));
            const Array<float> parts(device, nothing);
            const kernels::AttentionArguments arguments{.q = heads.q_device.data(), .out = out.data(), .heads = c.shape.heads, .tokens = heads.tokens,
                                                        .window = c.window, .scale = 0.11F, .pool = pool.get(), .places = heads.arguments().places,
                                                        .max_chunks = max_chunks, .partials = partials.data(), .tickets = tickets.data(),
                                                        .parts_to_hand = parts.data()};
            const std::vector<float> raw = heads.q;
            REQUIRE(kernels::attention_step(queue, heads.arguments(), arguments));
            heads.compute();
            const auto expected = attention_on_cpu(pool, c.places, heads.q, c.window, 0.11F);
            const auto problem = difference(out.read(), expected);
            QVERIFY2(problem.isEmpty(), qPrintable(QString("%1 heads of %2, %3 tokens, first at %4: ").arg(c.shape.heads).arg(c.shape.k_dim)
                                                       .arg(heads.tokens).arg(c.places[0].position) + problem));
            QVERIFY2(same_bits(pool.memory->read(), pool.content), qPrintable(QString("first at %1: pool").arg(c.places[0].position)));
            QCOMPARE(tickets.read(), std::vector<std::int32_t>(static_cast<std::size_t>(heads.tokens * c.shape.heads)));
            QVERIFY(std::ranges::all_of(partials.read(), [](float word) { return std::bit_cast<std::uint32_t>(word) == 0xffffffffU; }));
            QVERIFY(same_bits(parts.read(), nothing));
            if (!kernels::attention_quantizes(queue, arguments)) continue;
            const auto forms = [&](const auto& make) {
                const Array<std::int8_t> codes(device, size);
                const Array<float> scales(device, size / 256);
                const Array<std::int16_t> sums(device, size / 16);
                const auto done = make(kernels::Quantized{codes.data(), scales.data(), sums.data()});
                return std::tuple(done.has_value(), codes.read(), scales.read(), sums.read());
            };
            const auto of_output = forms([&](const kernels::Quantized& to) {
                return kernels::norm_rows(queue, {.x = out.data(), .rows = nullptr, .weight = nullptr, .epsilon = 0, .count = heads.tokens,
                                                  .n = c.shape.heads * c.shape.v_dim, .out = nullptr, .groups_256 = to, .groups_32 = {}});
            });
            heads.q_device.write(raw);
            const auto at_once = forms([&](const kernels::Quantized& to) {
                kernels::AttentionArguments quantized = arguments;
                quantized.groups_256 = to;
                return kernels::attention_step(queue, heads.arguments(), quantized);
            });
            QVERIFY(std::get<0>(at_once));
            QVERIFY(at_once == of_output);
            ++quantizing;
        }
        if (device.emulated() && !device.simulated() && (type == cpu::KvType::f16 || !plain)) QVERIFY(quantizing > 1);
    }

    void attentionIsTheCpus_data() { list_types(); }
    void attentionIsTheCpus() {
        auto& device = KernelDevice::chosen();
        QFETCH(cpu::KvType, type);
        QFETCH(bool, plain);
        const std::optional<kernels::Queue> chosen_queue = plain ? device.queue_without_matrix_units() : device.queue();
        if (!chosen_queue) QSKIP("this build has no code for cards without matrix units");
        const kernels::Queue queue = *chosen_queue;
        Random random(2);
        std::vector<Case> cases = {
            {{8, 1, 128, 128}, {{0, 0}}, 0},
            {{8, 1, 128, 128}, {{0, 130}}, 0},
            {{16, 2, 128, 128}, {{0, 255}, {1, 256}, {2, 700}}, 0},
            {{4, 4, 64, 64}, {{0, 300}, {0, 301}}, 0},
            {{14, 2, 64, 64}, {{0, 1030}}, 0},
            {{6, 2, 32, 96}, {{0, 270}, {1, 3}}, 0},
            {{4, 2, 96, 32}, {{0, 599}}, 100},
            {{4, 1, 64, 64}, {{0, 600}, {1, 50}, {2, 511}, {2, 512}}, 257},
            {{2, 1, 256, 256}, {{0, 513}}, 0},
            {{16, 1, 192, 128}, {{0, 520}, {1, 7}}, 0},
            {{5, 1, 160, 160}, {{0, 257}}, 3},
        };
        if (!device.emulated()) {
            cases.push_back({{32, 4, 128, 128}, {{0, 16384}}, 0});
            cases.push_back({{32, 4, 128, 128}, {{0, 4095}, {1, 9000}, {2, 3}}, 0});
            cases.push_back({{32, 4, 128, 128}, {}, 0});
            for (std::int32_t t = 0; t < 64; ++t) cases.back().places.push_back({t, 37 * t});
            cases.push_back({{16, 8, 256, 256}, {{0, 3000}, {1, 2047}}, 1024});
        }
        for (const Case& c : cases) {
            Pool pool(device, c.shape, type, lengths_for(c.places), random);
            const auto tokens = static_cast<std::int32_t>(c.places.size());
            const auto queries = random.values(tokens * c.shape.heads * c.shape.k_dim);
            const auto expected = attention_on_cpu(pool, c.places, queries, c.window, 0.11F);
            const Array<float> q(device, queries);
            Array<float> out(device, expected.size());
            const Array<std::int32_t> positions(device, positions_of(c.places)), sessions(device, sessions_of(c.places));
            const Array<std::int32_t> tickets(device, std::vector<std::int32_t>(static_cast<std::size_t>(tokens * c.shape.heads)));
            for (const std::int32_t spare : {0, 3}) {
                const std::int32_t max_chunks = pool.stride - 1 + spare;
                const Array<float> partials(device, static_cast<std::size_t>(tokens * c.shape.heads * max_chunks * (c.shape.v_dim + 2)));
                const kernels::AttentionArguments arguments{.q = q.data(), .out = out.data(), .heads = c.shape.heads, .tokens = tokens, .window = c.window,
                                                            .scale = 0.11F, .pool = pool.get(),
                                                            .places = {positions.data(), sessions.data(), pool.pages->data(), pool.stride},
                                                            .max_chunks = max_chunks, .partials = partials.data(), .tickets = tickets.data()};
                out.write(std::vector<float>(expected.size(), 9.0F));
                REQUIRE(kernels::attention_rows(queue, arguments));
                const auto problem = difference(out.read(), expected);
                QVERIFY2(problem.isEmpty(), qPrintable(QString("%1 heads of %2, %3 tokens, first at %4: ").arg(c.shape.heads).arg(c.shape.k_dim).arg(tokens)
                                                           .arg(c.places[0].position) + problem));
            }
        }
    }

    // Its own order of additions, halves for queries and weights: the tolerance of docs/arithmetic.md.
    void prefillIsCloseToTheCpus_data() { list_types(); }
    void prefillIsCloseToTheCpus() {
        auto& device = KernelDevice::chosen();
        QFETCH(cpu::KvType, type);
        QFETCH(bool, plain);
        const std::optional<kernels::Queue> chosen_queue = plain ? device.queue_without_matrix_units() : device.queue();
        if (!chosen_queue) QSKIP("this build has no code for cards without matrix units");
        const kernels::Queue queue = *chosen_queue;
        Random random(3);
        struct Prompt {
            Shape shape;
            std::int32_t first, tokens, window;
        };
        std::vector<Prompt> prompts = {
            {{8, 1, 128, 128}, 0, 40, 0},  {{4, 2, 64, 64}, 250, 70, 0},   {{3, 3, 96, 96}, 300, 50, 0},
            {{7, 1, 64, 64}, 511, 20, 33}, {{16, 1, 256, 256}, 10, 17, 0}, {{2, 1, 64, 128}, 255, 2, 0},
            {{6, 2, 32, 32}, 220, 60, 0},
        };
        if (!device.emulated()) {
            prompts.push_back({{32, 4, 128, 128}, 0, 700, 0});
            prompts.push_back({{32, 8, 128, 128}, 1500, 333, 0});
            prompts.push_back({{8, 4, 256, 256}, 700, 300, 512});
            prompts.push_back({{14, 2, 64, 64}, 3, 1000, 0});
        }
        for (const Prompt& p : prompts) {
            std::vector<Place> places;
            for (std::int32_t t = 0; t < p.tokens; ++t) places.push_back({1, p.first + t});
            Pool pool(device, p.shape, type, lengths_for(places), random);
            const auto queries = random.values(p.tokens * p.shape.heads * p.shape.k_dim);
            const float scale = 1 / std::sqrt(static_cast<float>(p.shape.k_dim));
            // Codes become halves, and then it goes the way of halves; queries remain what they are. Without matrix units the exact order is kept.
            Pool halves(device, p.shape, cpu::KvType::f16, lengths_for(places), random);
            if (type == cpu::KvType::q8_0) halves.take_values_of(pool, 1);
            const bool exact = device.simulated() || plain || p.shape.k_dim != p.shape.v_dim || p.shape.k_dim == 32;
            const auto expected = attention_on_cpu(type == cpu::KvType::f16 || exact ? pool : halves, places, queries, p.window, scale);
            const Array<float> q(device, queries), out(device, expected.size());
            const Array<std::int32_t> positions(device, positions_of(places)), sessions(device, sessions_of(places));
            REQUIRE(kernels::attention_prefill(queue, {.q = q.data(), .out = out.data(), .heads = p.shape.heads, .tokens = p.tokens,
                                                                .window = p.window, .scale = scale, .pool = pool.get(),
                                                                .places = {positions.data(), sessions.data(), pool.pages->data(), pool.stride},
                                                                .max_chunks = 0, .partials = nullptr, .tickets = nullptr}));
            const auto seen = out.read();
            double squares = 0, errors = 0, worst = 0;
            for (std::size_t i = 0; i < seen.size(); ++i) {
                const double error = static_cast<double>(seen[i]) - static_cast<double>(expected[i]);
                squares += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
                errors += error * error;
                worst = std::isnan(error) ? 1e9 : std::max(worst, std::abs(error));
            }
            const auto text = QString("%1 heads of %2, %3 tokens from %4: error %5, worst %6").arg(p.shape.heads).arg(p.shape.k_dim).arg(p.tokens)
                                  .arg(p.first).arg(std::sqrt(errors / squares)).arg(worst);
            QVERIFY2(std::sqrt(errors / squares) < 0x1p-10 && worst < 0x1p-7, qPrintable(text));
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelAttention)
#include "tst_kernel_attention.moc"
