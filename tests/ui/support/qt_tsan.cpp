// For the thread sanitizer, which sees nothing inside Qt's libraries: they are built without it, and their locks are atomics of their
// own. A queued call or signal therefore looks to it as if one thread handed data to another without a word. This file tells it, for
// the two functions by which a program hands something to Qt's queues, and for the moment when Qt delivers an event.
//
// What is told is no more than what Qt promises: that which happened before a queued call was made, or a signal was emitted in a thread
// other than the window's, happened before an event that is delivered later. It is a little generous in the second case: signals count
// for all events of the window's thread, not for their own receivers' alone.

#include <QCoreApplication>
#include <QThread>

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

// The sanitizer's own, in none of GCC 12's headers.
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);

namespace {

char signals_of_workers;  // its address stands for all signals from other threads than the window's

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool before_delivery(void** parameters) {
    // parameters: receiver, event, result. False: deliver it as usual.
    __tsan_acquire(parameters[0]);
    __tsan_acquire(&signals_of_workers);
    return false;
}

const bool registered = QInternal::registerCallback(QInternal::EventNotifyCallback, before_delivery);

}  // namespace

// In place of Qt's own, which they call: the linker takes a program's functions before those of libraries.

bool QMetaObject::invokeMethodImpl(QObject* object, QtPrivate::QSlotObjectBase* slot, Qt::ConnectionType type, void* result) {
    static const auto qt = next<bool (*)(QObject*, QtPrivate::QSlotObjectBase*, Qt::ConnectionType, void*)>(
        "_ZN11QMetaObject16invokeMethodImplEP7QObjectPN9QtPrivate15QSlotObjectBaseEN2Qt14ConnectionTypeEPv");
    __tsan_release(object);
    if (type != Qt::QueuedConnection) return qt(object, slot, type, result);  // may call the slot at once
    // Nothing of ours runs in here. The event that Qt makes, and its own count of who uses the slot, are not watched.
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    const bool queued = qt(object, slot, type, result);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    return queued;
}

void QMetaObject::activate(QObject* sender, const QMetaObject* meta, int signal, void** arguments) {
    static const auto qt = next<void (*)(QObject*, const QMetaObject*, int, void**)>("_ZN11QMetaObject8activateEP7QObjectPKS_iPPv");
    if (QCoreApplication::instance() && QThread::currentThread() == QCoreApplication::instance()->thread()) {
        qt(sender, meta, signal, arguments);
        return;
    }
    // Signals of other threads are queued here: all that Qt does is to copy their arguments for the receiver. These copies are made
    // after what can be told and before Qt's own locks, so they are not watched.
    __tsan_release(&signals_of_workers);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    qt(sender, meta, signal, arguments);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}
