#pragma once

#include <QDoubleSpinBox>

#include <cstdint>
#include <optional>

namespace headroom::ui {

// A size in GiB to type or step, or nothing, which has words of its own ("default") and stands below zero.
class GibField : public QDoubleSpinBox {
    Q_OBJECT

public:
    explicit GibField(const QString& nothing, QWidget* parent = nullptr);

    [[nodiscard]] std::optional<std::uint64_t> bytes() const;
    // No signal. While somebody types in it, it stays as it is.
    void set_bytes(std::optional<std::uint64_t> bytes);
    void set_most(std::uint64_t bytes);

    void stepBy(int steps) override;
    [[nodiscard]] double valueFromText(const QString& text) const override;
    [[nodiscard]] QValidator::State validate(QString& text, int& at) const override;

signals:
    void chosen(std::optional<std::uint64_t> bytes);  // by a hand

protected:
    void wheelEvent(QWheelEvent* event) override;

private:
    [[nodiscard]] bool is_nothing(const QString& text) const;  // an empty field, or its words for nothing

    std::optional<std::uint64_t> exact_;  // what was set; the field shows one decimal of it
    std::uint64_t most_ = 0;
};

}  // namespace headroom::ui
