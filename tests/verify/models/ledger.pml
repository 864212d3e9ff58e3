/*
 * Claims between machines (PROTOCOL 23-27): one ref for each claim, changed by compare-and-swap at the remote.
 *
 * A machine looks at the ref, decides, and pushes its claim against what it saw. The answer of a push may be lost; then
 * it looks again, and what stands there decides. A machine may sleep for any length of time while its claim runs out and
 * another takes it. A publish pushes the branch and a new beat on the claim in one: both, or neither. A release leaves a
 * tombstone. Tokens of grants only rise; the branch sees them only rise. Work may stay unpublished when its claim ends: it
 * is published under a later claim of the same machine, if no other machine was granted the issue in between.
 *
 * MUTANT 1: a publish leaves the claim's ref as it is, so nobody checks it.
 * MUTANT 2: a claim is pushed whatever the ref has become since it was looked at.
 * MUTANT 3: a release deletes the ref instead of leaving a tombstone.
 * MUTANT 4: work from before is published under whatever claim is valid now.
 */
#ifndef MACHINES
#define MACHINES 2
#endif
#ifndef PUSHES
#define PUSHES 5
#endif

byte version = 0;      /* of the ref: every push makes a new commit */
byte holder = 0;       /* 0: nobody yet, else machine + 1 */
byte token = 0;
bool held = false;
bool expired = false;  /* by the clock of whoever looks */
byte highest = 0;      /* of all grants that ever were */
byte published = 0;    /* the token of the branch's last commit */
byte work[MACHINES];   /* unpublished work of each machine: 0 none, 1 some, 2 some, and another was granted the issue since */

proctype Machine(byte me) {
  byte seen;     /* the ref as it was looked at, then as it was left by our own push */
  byte mine;     /* our token */
  bool landed;
  bool believes;
  byte i;
  do
  :: atomic { version < PUSHES && (!held || expired) -> seen = version; mine = token + 1; landed = false };
      atomic {
        if
#if MUTANT == 2
        :: version < PUSHES ->
#else
        :: version < PUSHES && version == seen ->
#endif
          landed = true;
          assert(mine > highest);
          highest = mine;
          d_step {
            for (i : 0 .. MACHINES - 1) {
              if
              :: i != me && work[i] == 1 -> work[i] = 2
              :: else
              fi
            }
            i = 0
          };
          version++; holder = me + 1; token = mine; held = true; expired = false; seen = version
        :: else
        fi
      };
      if
      :: landed -> believes = true
      :: !landed -> believes = false
      :: /* the answer is lost: what stands there decides */
        atomic {
          if
          :: holder == me + 1 && token == mine && held -> believes = true; seen = version
          :: else -> believes = false
          fi
        }
      fi;
      /* anything may happen here: it sleeps, its claim runs out, another takes over */
      if
      :: believes ->
        atomic {
          if
#if MUTANT == 1
          :: true ->
            assert(mine >= published); published = mine
#else
          :: version == seen && version < PUSHES ->
#if MUTANT != 4
            if
            :: work[me] == 2 -> believes = false
            :: else ->
#endif
              /* branch and beat, in one push */
              version++; seen = version;
              assert(work[me] != 2);
              assert(mine >= published); published = mine; work[me] = 0
#if MUTANT != 4
            fi
#endif
          :: else -> believes = false
#endif
          fi
        }
      :: believes && work[me] == 0 -> work[me] = 1 /* and published later, or never */
      :: true
      fi;
      if
      :: believes ->
        atomic {
          if
          :: version == seen && version < PUSHES ->
            version++; held = false;
#if MUTANT == 3
            token = 0
#else
            skip
#endif
          :: else
          fi
        }
      :: true
      fi
    /* nothing of this round matters to the next */
    d_step { seen = 0; mine = 0; landed = false; believes = false }
  :: version >= PUSHES -> break
  od
}

proctype Clock() {
  byte ticks = 0;
end:
  do
  :: ticks < PUSHES -> atomic { held && !expired -> expired = true; ticks++ }
  :: break
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. MACHINES - 1) { run Machine(i) }
    run Clock()
  }
}
