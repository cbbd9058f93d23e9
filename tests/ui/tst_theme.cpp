#include <QTest>

#include <cmath>

#include "ui/theme/theme.h"

using namespace headroom::ui;

namespace {

double luminance(const QColor& color) {
    const auto linear = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double contrast(const QColor& a, const QColor& b) {
    const double la = luminance(a);
    const double lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

}  // namespace

class TestTheme : public QObject {
    Q_OBJECT

private slots:
    // WCAG AA: 4.5:1 for text.
    void contrast_of_text_data() {
        QTest::addColumn<bool>("dark");
        QTest::newRow("light") << false;
        QTest::newRow("dark") << true;
    }
    void contrast_of_text() {
        QFETCH(bool, dark);
        const Theme theme(dark ? Theme::Mode::dark : Theme::Mode::light, 100);
        QCOMPARE(theme.dark(), dark);
        using R = ColorRole;
        const std::pair<R, R> pairs[] = {
            {R::text, R::page}, {R::text, R::sidebar}, {R::text, R::surface}, {R::text, R::hover}, {R::text, R::accent_soft},
            {R::text, R::danger_soft}, {R::text, R::success_soft}, {R::text, R::warning_soft}, {R::text, R::code}, {R::muted, R::page}, {R::muted, R::sidebar},
            {R::muted, R::surface}, {R::muted, R::code}, {R::on_accent, R::accent}, {R::accent, R::page}, {R::danger, R::page},
        };
        for (const auto& [front, back] : pairs) {
            const double found = contrast(theme.color(front), theme.color(back));
            QVERIFY2(found >= 4.5, qPrintable(QStringLiteral("roles %1 on %2: %3").arg(int(front)).arg(int(back)).arg(found)));
        }
    }

    // VRAM by owner: its labels are readable, in the better of two colours.
    void contrast_of_vram_data() { contrast_of_text_data(); }
    void contrast_of_vram() {
        QFETCH(bool, dark);
        const Theme theme(dark ? Theme::Mode::dark : Theme::Mode::light, 100);
        using R = ColorRole;
        for (const R role : {R::vram_others, R::vram_kv, R::vram_weights, R::vram_scratch}) {
            const double found = contrast(theme.color(role), theme.color(theme.text_on(role)));
            QVERIFY2(found >= 4.5, qPrintable(QStringLiteral("role %1: %2").arg(int(role)).arg(found)));
        }
    }

    void icons_are_there_in_every_size() {
        const Theme theme(Theme::Mode::light, 100);
        for (const char* name : {"new-chat", "search", "send", "stop", "copy", "check", "edit", "regenerate", "settings", "sampling", "log",
                                 "more", "open", "chevron-left", "chevron-right", "chevron-down", "arrow-down", "close", "model", "sidebar"}) {
            const QIcon icon = theme.icon(QLatin1String(name));
            QVERIFY2(icon.availableSizes().size() == 3, name);
            const QImage image = icon.pixmap(20).toImage();
            bool drawn = false;
            for (int y = 0; y < image.height(); ++y) {
                for (int x = 0; x < image.width(); ++x) drawn = drawn || image.pixelColor(x, y).alpha() > 128;
            }
            QVERIFY2(drawn, name);
        }
    }

    void text_scales_within_limits() {
        Theme theme(Theme::Mode::light, 100);
        const double size = QApplication::font().pointSizeF();
        theme.set_text_percent(200);
        QCOMPARE(QApplication::font().pointSizeF(), 2 * size);
        QCOMPARE(theme.px(8), 16);
        theme.set_text_percent(1000);
        QCOMPARE(theme.text_percent(), 200);
        theme.set_text_percent(1);
        QCOMPARE(theme.text_percent(), 75);
        theme.set_text_percent(100);
    }
};

QTEST_MAIN(TestTheme)
#include "tst_theme.moc"
