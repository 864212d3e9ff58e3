/*
 * Several keys at once (docs/GUARANTEES.md, promise 7): taken together or not at all, in one line of the log.
 *
 * Two agents want overlapping pairs of keys. The line that grants both is one append; a crash before it grants
 * nothing, a crash after it grants both, whatever the index entries say, because the next writer replays.
 * Nobody ever holds one key of its pair without the other, and no key has two holders.
 *
 * MUTANT 1: each key is granted by a line of its own.
 */
#ifndef AGENTS
#define AGENTS 3
#endif
#define KEYS 3

byte log[KEYS];        /* what the log's lines add up to: holder + 1 per key */
bool locked = false;
byte kills = 0;
byte granted = 0;

inline check() {
  byte k, n;
  d_step {
    n = 0;
    for (k : 0 .. KEYS - 1) {
      if
      :: log[k] == who + 1 -> n++
      :: else
      fi
    };
    k = 0
  };
  assert(n == 0 || n == 2)
}

proctype Agent(byte who) {
  byte one = who % KEYS;
  byte two = (who + 1) % KEYS;
  byte rounds = 0;
  do
  :: rounds < 2 ->
    rounds++;
    atomic { !locked -> locked = true };
    if
    :: log[one] == 0 && log[two] == 0 ->
#if MUTANT == 1
      log[one] = who + 1;
      if
      :: skip
      :: kills < 1 -> atomic { kills++; locked = false }; goto dead
      fi;
      log[two] = who + 1;
#else
      if
      :: skip
      :: kills < 1 -> atomic { kills++; locked = false }; goto dead
      fi;
      d_step { log[one] = who + 1; log[two] = who + 1 };   /* one write of one line */
#endif
      granted++;
      locked = false;
      if
      :: skip
      :: kills < 1 -> kills++; goto dead
      fi;
      atomic { !locked -> locked = true };
      d_step { log[one] = 0; log[two] = 0 };               /* released by one line as well */
      locked = false
    :: else -> locked = false
    fi
  :: else -> break
  od;
dead:
  check()
}

init {
  byte i;
  atomic { for (i : 0 .. AGENTS - 1) { run Agent(i) } }
}
