#include <QTest>

#include "core/model/kv_cache.h"

using namespace headroom;
using namespace headroom::model;

namespace {

constexpr KvShape kShape{.layers = 3, .kv_heads = 2, .head_dim = 4, .head_dim_v = 5};
constexpr std::uint64_t kPageBytes = 3u * 2 * 256 * (4 + 5) * 2;
constexpr KvShape kQuantized{.layers = 3, .kv_heads = 2, .head_dim = 64, .head_dim_v = 32, .type = cpu::KvType::q8_0};

}  // namespace

class TstKvCache : public QObject {
    Q_OBJECT

private slots:
    void sizes() {
        QCOMPARE(kShape.page_bytes(), kPageBytes);
        QCOMPARE(kShape.bytes(0), 0u);
        QCOMPARE(kShape.bytes(1), kPageBytes);
        QCOMPARE(kShape.bytes(256), kPageBytes);
        QCOMPARE(kShape.bytes(257), 2 * kPageBytes);
        // A code for each element, a half for each 32.
        QCOMPARE(kQuantized.page_bytes(), 3u * 2 * 256 * ((64 + 2 * 2) + (32 + 2)));
        QCOMPARE(kQuantized.key_bytes(), 2u * 256 * (64 + 2 * 2));
        QCOMPARE(kQuantized.bytes(257), 2 * kQuantized.page_bytes());
    }

    void grows_by_pages_and_keeps_what_is_there() {
        KvCache cache(kShape);
        QCOMPARE(cache.allocated_bytes(), 0u);
        QVERIFY(cache.reserve(1));
        QCOMPARE(cache.allocated_bytes(), kPageBytes);
        QCOMPARE(cache.length(), 0);
        cache.view(2).k_pages[0][7] = std::byte{123};
        cache.view(2).v_pages[0][2 * 2 * 256 * 5 - 1] = std::byte{56};
        QVERIFY(cache.reserve(600));
        QCOMPARE(cache.allocated_bytes(), 3 * kPageBytes);
        QCOMPARE(cache.view(2).k_pages[0][7], std::byte{123});
        QCOMPARE(cache.view(2).v_pages[0][2 * 2 * 256 * 5 - 1], std::byte{56});
        QVERIFY(cache.reserve(10));
        QCOMPARE(cache.allocated_bytes(), 3 * kPageBytes);
    }

    void layers_and_pages_do_not_overlap() {
        for (const KvShape& shape : {kShape, kQuantized}) {
            KvCache cache(shape);
            QVERIFY(cache.reserve(512));
            const std::int64_t k_bytes = cpu::kv_part_bytes(shape.type, shape.kv_heads, shape.head_dim);
            const std::int64_t v_bytes = cpu::kv_part_bytes(shape.type, shape.kv_heads, shape.head_dim_v);
            std::uint32_t mark = 0;
            const auto each = [&](auto&& action) {
                mark = 0;
                for (std::int64_t layer = 0; layer < 3; ++layer) {
                    const cpu::KvView view = cache.view(layer);
                    for (std::size_t page = 0; page < 2; ++page) {
                        for (std::int64_t i = 0; i < k_bytes; ++i) action(view.k_pages[page][i]);
                        for (std::int64_t i = 0; i < v_bytes; ++i) action(view.v_pages[page][i]);
                    }
                }
            };
            // A prime keeps the marks of parts of like sizes apart.
            each([&](std::byte& value) { value = static_cast<std::byte>(mark++ % 251); });
            bool equal = true;
            each([&](const std::byte& value) { equal = equal && value == static_cast<std::byte>(mark++ % 251); });
            QVERIFY(equal);
        }
    }

    void truncating_gives_pages_back() {
        KvCache cache(kShape);
        QVERIFY(cache.reserve(600));
        cache.set_length(600);
        cache.truncate(700);
        QCOMPARE(cache.length(), 600);
        cache.truncate(256);
        QCOMPARE(cache.length(), 256);
        QCOMPARE(cache.allocated_bytes(), kPageBytes);
        cache.truncate(0);
        QCOMPARE(cache.allocated_bytes(), 0u);
        QVERIFY(cache.reserve(1));
        QCOMPARE(cache.allocated_bytes(), kPageBytes);
    }

    void memory_that_is_not_there_is_an_error() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        QSKIP("the sanitizer ends the program when an allocation fails");
#endif
        KvCache cache({.layers = 4096, .kv_heads = 1 << 20, .head_dim = 1 << 18, .head_dim_v = 1 << 18});
        const auto result = cache.reserve(1);
        QVERIFY(!result);
        QCOMPARE(result.error().kind, ErrorKind::out_of_memory);
        QCOMPARE(cache.length(), 0);
    }
};

QTEST_GUILESS_MAIN(TstKvCache)
#include "tst_kv_cache.moc"
