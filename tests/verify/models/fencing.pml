/*
 * Fencing through expiry, steal and release (docs/GUARANTEES.md, promises 1-3; PROTOCOL 10).
 *
 * Holders take a key, may be paused for any length of time while the clock runs out, write to what the key
 * guards, and release. Grants and guarded writes happen under the mutex, and a write checks there that the
 * lease at the key is still the writer's own. Tokens only rise; the guarded thing sees them only rise.
 *
 * MUTANT 1: the write checks its lease before it enters the critical section.
 * MUTANT 2: a release frees the key whoever holds it now.
 */
#ifndef HOLDERS
#define HOLDERS 3
#endif
#ifndef GRANTS
#define GRANTS 5
#endif

byte holder = 0;       /* 0: nobody, else holder + 1 */
byte token = 0;        /* of the lease at the key */
byte nextToken = 1;
bool expired = false;  /* the lease at the key has run out */
byte written = 0;      /* token of the last write to the guarded thing */
byte valid = 0;        /* leases that were granted and have neither run out nor been given back */

/* Whoever asks: free, or lapsed, which is a steal and ends the old lease in the same step. */
proctype Holder(byte me) {
  byte mine;
  bool ours;
  do
  :: nextToken <= GRANTS ->
    mine = 0;
    atomic {
      if
      :: (holder == 0 || expired) && nextToken <= GRANTS ->
        assert(valid == 0);
        valid++;
        holder = me + 1; token = nextToken; mine = nextToken; nextToken++; expired = false
      :: else
      fi
    };
    if
    :: mine != 0 ->
      /* anything may happen here: the process is stopped, its lease runs out, another takes over */
#if MUTANT == 1
      ours = (holder == me + 1 && token == mine && !expired);
      if
      :: ours -> assert(mine >= written); written = mine
      :: else
      fi;
#else
      atomic {
        ours = (holder == me + 1 && token == mine && !expired);
        if
        :: ours -> assert(mine >= written); written = mine
        :: else
        fi
      };
#endif
      /* release: fenced like any other write, though what expired and was not taken may be given back */
      atomic {
        if
        :: holder == me + 1 && token == mine ->
          if
          :: !expired -> valid--
          :: else
          fi;
          holder = 0; expired = false
#if MUTANT == 2
        :: holder != me + 1 -> holder = 0; expired = false
#endif
        :: else
        fi
      }
    :: else
    fi
  :: else -> break
  od
}

proctype Clock() {
  byte ticks = 0;
end:
  do
  :: ticks < GRANTS -> atomic { holder != 0 && !expired -> expired = true; valid--; ticks++ }
  :: break
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. HOLDERS - 1) { run Holder(i) }
    run Clock()
  }
}
