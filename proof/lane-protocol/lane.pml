/*
 * The lane protocol: one lane, its messages, the slots that run it, and everything that may go wrong.
 * The README.md next to this file maps the steps to source files and says what is left out.
 *
 * One transaction of the store is one d_step or atomic here. Between two of them anything may happen,
 * in any order and any number of times, until the world is calm: processes are killed, steps throw,
 * holders sleep past their lease, wakes are lost or come from nowhere, timers are lost.
 */

#ifndef MESSAGES
#define MESSAGES 3              /* events that the platform has for this lane: 2, 3 or 4 */
#endif
#ifndef SLOTS
#define SLOTS 2                 /* how many slots can run the lane: 2 or 3 */
#endif
#ifndef TRIES
#define TRIES 2                 /* a run that is found unfinished again after this many is given up */
#endif
#ifdef ONE_PROCESS
#define PROCESS(s) 1            /* another slot of the same process may claim what one slot keeps */
#else
#define PROCESS(s) (s + 1)
#endif
#define NOBODY 0
#define DEAD 9                  /* a process that is gone; its lease keeps running */

/* ---- The store --------------------------------------------------------------------------------- */

#define NONE 0
#define WAITING 1
#define TAKEN 2
#define ENDED 3                 /* answered exactly if `said`, otherwise cancelled or failed */
byte accepted;                  /* rows 1..accepted, numbered in the order of their acceptance */
byte state[MESSAGES + 1];
byte takenBy[MESSAGES + 1];     /* the run of a taken row */
bit due[MESSAGES + 1];          /* the time of a waiting row has come */

byte epoch;                     /* only compared for equality, so a number that nothing holds may be reused */
byte holder;                    /* the process that has the lease */
bit lease;                      /* it has not expired */
byte openRun;                   /* the unfinished run; like the epoch, a number nothing knows may be reused */
byte tries;
bit cancel;                     /* the run was asked to stop */
bit handedOver;                 /* the run was handed over: continuing it is no further attempt */
bit parked;                     /* it waits for its call, without a holder, until its lease ends */

#define PENDING 1
#define STARTED 2
#define DONE 3
byte call;                      /* the only tool call of this world; it must not be repeated */
byte callOf;                    /* its run, until it is done */
bit callWaits;                  /* it is to be settled from outside */

#ifdef ASKS                     /* a person has to approve the call */
#define ASKED 1                 /* open: nobody has decided */
#define APPROVED 2
#define REFUSED 3               /* denied, expired or void */
byte question;                  /* about the call */
#endif

byte last;                      /* the last message of the transcript */
byte readFrom;                  /* the last one before those the open run has still to answer */
byte decided;                   /* the last one that the open run began with, or has read and decided on */

/* ---- Outside the store -------------------------------------------------------------------------- */

#ifdef FAULTLESS
bit calm = 1;
#else
bit calm;                       /* nothing goes wrong from here on */
#endif
bit wake;                       /* a wake job in Redis: one per lane, however often it is woken */
bit timer;                      /* a delayed wake in a process's memory */
/* Until the world is calm, any wake may be lost and a slot may look at any time, so neither needs a state. */
#define set(it) it = calm

#define IDLE 0
#define WOKEN 1                 /* claims (again) */
#define RECOVERS 2              /* has claimed a run that was begun before */
#define REDOES 3                /* about to run a call that had not started */
#define REDONE 4                /* it has run, its result isn't stored yet */
#define READS 5                 /* about to read the history */
#define BOUNDARY 6              /* before the first model call */
#define THINKS 7                /* the model is writing */
#define CALLS 8                 /* its call is on record */
#define ACTS 9                  /* the call is marked as started */
#define ACTED 10                /* it has had its effect, its result isn't stored yet */
#define STOPS 11                /* knows that it was asked to stop */
#define GRABS 12                /* only in broken variants: between the two halves of a step */
byte at[SLOTS];
byte held[SLOTS];               /* the epoch it has claimed */
byte mine[SLOTS];               /* the run it works on */
byte from[SLOTS];               /* its context: up to here answered, */
byte upTo[SLOTS];               /* and up to here read */

/* Choices that a step may make either way; 0 between steps. */
byte pick;                      /* how many rows the mode, the routes and the rights let it take */
bit extendAnsweredRun;          /* mayKeepLane: the holder may keep the lane */
bit kept;                       /* steer-backlog: steers that were not read are requeued */
bit later;                      /* the new row waits for its file, its bundle, the quiet window */
bit quiet;                      /* and the quiet window restarts for all waiting rows */
bit interrupts;                 /* the new row aborts the active run */

/* ---- What is checked ----------------------------------------------------------------------------- */

#ifdef WITHOUT_LEDGER
byte event[MESSAGES + 1];       /* an event delivered again gets another row */
bit again;
#define EVENT(m) event[m]
#else
#define EVENT(m) m
#endif
bit said[MESSAGES + 1];         /* an answer to it was committed */
bit gone[MESSAGES + 1];         /* in the transcript, or ended without it */
bit acted;                      /* the tool call has had its effect */
#ifdef ASKS
bit allowed;                    /* somebody pressed "approve" while they could */
bit refused;                    /* or "deny" before that, or the time was over, or it was stopped */
#define may_act assert(allowed); assert(!refused)
#else
#define may_act skip
#endif
byte owner;                     /* the slot that claimed last, plus one: only it may write */
#ifdef JUDGE_BY_HARM            /* for variants that must do more harm than a write out of turn */
#define in_turn(s) true
#else
#define in_turn(s) (owner == s + 1)
#endif

/* ---- Guards --------------------------------------------------------------------------------------- */

hidden byte i, j;               /* only inside a d_step */

#ifdef WITHOUT_EPOCH
#define may_write(s) true
#else
#define may_write(s) (held[s] == epoch)
#endif

#ifdef LEASE_IGNORED
#define may_claim(s) true
#else
#define may_claim(s) (!lease || (holder == PROCESS(s) && openRun == 0))
#endif

#define waits(m) (state[m] == WAITING)
#define is_due(m) (waits(m) && due[m])
#define is_ended(m) (state[m] == ENDED)
#if MESSAGES == 2
#define SOME(is) (is(1) || is(2))
#define ALL(is) (is(1) && is(2))
#define head_is_due (is_due(1) || (!waits(1) && is_due(2)))
#elif MESSAGES == 3
#define SOME(is) (is(1) || is(2) || is(3))
#define ALL(is) (is(1) && is(2) && is(3))
#define head_is_due (is_due(1) || (!waits(1) && (is_due(2) || (!waits(2) && is_due(3)))))
#else
#define SOME(is) (is(1) || is(2) || is(3) || is(4))
#define ALL(is) (is(1) && is(2) && is(3) && is(4))
#define head_is_due (is_due(1) || (!waits(1) && (is_due(2) || (!waits(2) && (is_due(3) || (!waits(3) && is_due(4)))))))
#endif
#if SLOTS == 2
#define ANY(is, x) (is(0, x) || is(1, x))
#else
#define ANY(is, x) (is(0, x) || is(1, x) || is(2, x))
#endif
#define holds(s, e) (at[s] != IDLE && held[s] == (e))
#define knows(s, r) (at[s] != IDLE && mine[s] == (r))

/* Every message has its outcome, and the lane is free. */
#define settled (accepted == MESSAGES && ALL(is_ended) && openRun == 0 && !lease)

/* ---- Parts of transactions ------------------------------------------------------------------------- */

inline rest(s) {
  at[s] = IDLE; held[s] = 0; mine[s] = 0; from[s] = 0; upTo[s] = 0
}

inline append(m) {
  assert(!gone[EVENT(m)]);                        /* taken once */
  assert(m > last);                               /* in the order of arrival */
  gone[EVENT(m)] = 1; last = m
}

/* takeRows: takes the first waiting rows that are due, at most `count`. Leaves their number in j. */
inline take(count, r) {
  i = 1; j = 0;
  do
#ifdef OVERTAKES
  :: i <= MESSAGES && j < count ->
     if
     :: is_due(i) ->
#else
  :: i <= MESSAGES && j < count && !(waits(i) && !due[i]) ->
     if
     :: waits(i) ->
#endif
        state[i] = TAKEN; due[i] = 0; takenBy[i] = r; append(i); j++
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

#ifdef TAKE_APART
byte marked[SLOTS];

inline mark_next(s) {
  i = 1;
  do
  :: i < MESSAGES && !waits(i) -> i++
  :: else -> break
  od;
  if
  :: is_due(i) -> state[i] = TAKEN; due[i] = 0; takenBy[i] = mine[s]; marked[s] = i
  :: else -> marked[s] = 0
  fi;
  i = 0
}
#endif

/* The outcome of the messages that run `r` has taken and not yet answered. */
inline end_taken(r, answered) {
  i = 1;
  do
  :: i <= MESSAGES ->
     if
     :: state[i] == TAKEN && takenBy[i] == r ->
        assert(said[EVENT(i)] == answered);       /* the outcome is true */
        state[i] = ENDED; takenBy[i] = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

inline free_lane() {
  holder = NOBODY; lease = 0
}

#ifdef ASKS
#define decide_no question = REFUSED; refused = 1

/* endOpenQuestions: nobody needs to answer any more, or nobody did. */
inline end_question() {
  if
  :: question == ASKED -> decide_no
  :: else
  fi
}

inline unpark() {
  if
  :: parked -> parked = 0; lease = 0; set(wake)
  :: else
  fi
}
#endif

inline forget_run(r) {
#ifdef ASKS
  assert(question != ASKED);                      /* no question outlives its run */
#endif
  if
  :: callOf == r -> call = (call == NONE -> NONE : DONE); callOf = 0; callWaits = 0
  :: else
  fi;
  openRun = 0; tries = 0; cancel = 0; handedOver = 0; parked = 0; decided = 0; readFrom = 0
}

/* requeueRetained: steers go back into the queue, to their old places, and out of the transcript. */
inline return_kept(r) {
  i = decided + 1;
  do
  :: kept && i <= MESSAGES ->
     if
     :: state[i] == TAKEN && takenBy[i] == r ->
        state[i] = WAITING; due[i] = 1; takenBy[i] = 0;
#ifndef KEPT_IN_TRANSCRIPT
        gone[EVENT(i)] = 0
#endif
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0;
  last = (kept -> decided : last);
  kept = 0
}

/* cancelRun: a parked run is claimed once more in order to end. */
inline cancel_run() {
  cancel = 1;
#if defined(ASKS) && !defined(QUESTION_LEFT)
  end_question();
#endif
#ifndef PARKED_STAYS
  if
  :: parked -> parked = 0; lease = 0; set(wake)
  :: else
  fi
#endif
}

inline settle_call() {
  call = DONE; callOf = 0; callWaits = 0;
  if
  :: parked -> parked = 0; lease = 0; set(wake)
  :: else
  fi
}

/* closeRun: leaves the lane continuing, armed, or idle. */
inline close_run(s) {
  forget_run(mine[s]);
  if
  :: SOME(waits) && head_is_due && extendAnsweredRun -> at[s] = WOKEN; mine[s] = 0; from[s] = 0; upTo[s] = 0
  :: else ->
     if
     :: SOME(waits) && head_is_due -> set(wake)
     :: SOME(waits) && !head_is_due -> set(timer)
     :: else
     fi;
     free_lane();
     rest(s)
  fi
}

#ifdef DRAIN_BY_END
#define close_cut(s) forget_run(mine[s]); free_lane(); rest(s)
#else
#define close_cut(s) close_run(s)
#endif

inline raise_epoch() {
  i = 1;
  do
  :: ANY(holds, i) -> i++
  :: else -> break
  od;
  epoch = i; i = 0
}

inline new_run() {
  i = 1;
  do
  :: ANY(knows, i) -> i++
  :: else -> break
  od;
  openRun = i; i = 0
}

/* An overtaken slot can only be refused, so its knowledge needs no state, only its epoch does. */
inline overtake(t) {
#ifndef WITHOUT_EPOCH
  if
  :: at[t] != IDLE && held[t] != epoch -> mine[t] = 0; from[t] = 0; upTo[t] = 0
  :: else
  fi
#endif
  skip
}

inline hold(s) {
  overtake(0); overtake(1);
#if SLOTS == 3
  overtake(2);
#endif
  holder = PROCESS(s); lease = 1; held[s] = epoch; mine[s] = openRun; owner = s + 1
}

/* claimLane: claim and take are one transaction. */
inline claim(s) {
  if
  :: parked && lease -> rest(s)
  :: !(parked && lease) && !may_claim(s) -> set(timer); rest(s)     /* busy */
  :: else ->
     held[s] = 0;
     if
     :: openRun != 0 ->
        tries = (handedOver -> tries : tries + 1);
        handedOver = 0;
        if
#ifdef ASKS
#ifdef EXPIRY_APPROVES
        :: parked -> parked = 0; question = (question == ASKED -> APPROVED : question)
#else
        :: parked -> parked = 0; end_question()                           /* the wait has expired */
#endif
#else
        :: parked -> parked = 0; call = DONE; callOf = 0; callWaits = 0   /* the wait has expired */
#endif
        :: else
        fi;
#ifndef EPOCH_KEPT
        raise_epoch();
#endif
        if
        :: tries > TRIES ->
#ifdef FAULTLESS
           assert(false);
#endif
           return_kept(openRun);
           end_taken(openRun, false);             /* given up */
           forget_run(openRun);
           free_lane();
           rest(s);
           at[s] = WOKEN                          /* again */
        :: else ->
           hold(s);
           at[s] = (cancel -> STOPS : RECOVERS)
        fi
     :: openRun == 0 && SOME(waits) && head_is_due ->
#ifdef CLAIM_UNLOCKED
        at[s] = GRABS
#else
        new_run();
        tries = 1;
        raise_epoch();
        hold(s);
        readFrom = last;
        take(pick + 1, openRun);
        decided = last;
        at[s] = READS
#endif
     :: else ->
        if
        :: SOME(waits) -> set(timer)              /* armed */
        :: else                                   /* idle */
        fi;
        free_lane();
        rest(s)
     fi
  fi;
  pick = 0; kept = 0
}

/* Answers the messages of the context that have no answer yet. */
inline say(s) {
  assert(!cancel);                                /* a stopped answer is not sent */
  i = from[s] + 1;
  do
  :: i <= upTo[s] ->
     assert(!said[EVENT(i)]);                     /* answered once */
     said[EVENT(i)] = (takenBy[i] == mine[s]);
     i++
  :: else -> break
  od;
  i = 0;
  readFrom = upTo[s]; decided = upTo[s]
}

/* The mode may change between any two steps, so each step may take as many as any mode would. */
inline choose_rows() {
  if
  :: pick = 0
  :: pick = 1
  :: pick = MESSAGES
  fi
}

inline choose_to_go_on() {
  if
  :: extendAnsweredRun = 0
  :: extendAnsweredRun = 1
  fi
}

inline choose_to_keep() {
  if
  :: kept = 0
  :: kept = 1
  fi
}

/* parkRun: the call may have been settled, or the run cancelled, before this step. */
inline park(s) {
  assert(in_turn(s));
  handedOver = 1; holder = NOBODY;
#ifdef PARK_UNSEEN
  parked = 1; lease = 1;
#else
  parked = (call == STARTED && callOf == mine[s] && !cancel); lease = parked;
#endif
  rest(s);
  raise_epoch();
  at[s] = (parked -> IDLE : WOKEN)                /* parked, or given back and checked again */
}

#ifdef ASKS
/* parkForApproval: the question and the parked run are one transaction. A call has one question. */
inline ask_and_park(s) {
  assert(in_turn(s));
  handedOver = 1; holder = NOBODY;
  question = (question == NONE && !cancel -> ASKED : question);
  parked = (question == ASKED && !cancel); lease = parked;
  rest(s);
  raise_epoch();
  at[s] = (parked -> IDLE : WOKEN)
}
#endif

/* ---- A slot ------------------------------------------------------------------------------------------ */

active [SLOTS] proctype Slot() {
  byte s = _pid;
end:
  do
  :: atomic { (at[s] == IDLE && (wake || !calm)) || at[s] == WOKEN -> choose_rows(); choose_to_keep();
       d_step { wake = (at[s] == IDLE -> 0 : wake); claim(s) } }

  /* recoverRun: a call that never started runs, every other open call is reported as unknown. */
  :: d_step { at[s] == RECOVERS && !may_write(s) -> rest(s) }
  :: d_step { at[s] == RECOVERS && may_write(s) ->
       assert(in_turn(s));
       if
#ifdef ASKS
#ifndef ASKED_RUNS
       :: callOf == mine[s] && call == PENDING && (question == NONE || question == ASKED) -> at[s] = CALLS
       :: callOf == mine[s] && call == PENDING && question == REFUSED -> call = DONE; callOf = 0; at[s] = READS
#endif
#endif
#if !defined(ASKS) || defined(ASKED_RUNS)
       :: callOf == mine[s] && call == PENDING -> call = STARTED; at[s] = REDOES
#else
       :: callOf == mine[s] && call == PENDING && question == APPROVED -> call = STARTED; at[s] = REDOES
#endif
#ifdef CALL_REPEATED
       :: callOf == mine[s] && call == STARTED -> at[s] = REDOES
#else
       :: callOf == mine[s] && call == STARTED -> call = DONE; callOf = 0; callWaits = 0; at[s] = READS
#endif
       :: else -> at[s] = READS
       fi }
  /* A call that waits for an outside result may be requested again if that does no harm. */
  :: d_step { at[s] == RECOVERS && may_write(s) && callOf == mine[s] && call == STARTED && callWaits -> at[s] = REDONE }
  :: d_step { at[s] == REDOES -> assert(!acted); may_act; acted = 1; at[s] = REDONE }
  :: d_step { at[s] == REDONE && !may_write(s) -> rest(s) }
  :: d_step { at[s] == REDONE && may_write(s) && !callWaits ->
       assert(in_turn(s)); call = DONE; callOf = 0; at[s] = READS }
  :: d_step { at[s] == REDONE && may_write(s) && callWaits -> park(s) }

  /* readHistory: no read checks the epoch. */
  :: d_step { at[s] == READS -> from[s] = readFrom; upTo[s] = last; at[s] = BOUNDARY }

  /* takeSteers before the first word: the call is given up for what has arrived. */
  :: atomic { at[s] == THINKS && call == NONE && may_write(s) && !cancel && head_is_due ->
       if
       :: pick = 1
       :: pick = MESSAGES
       fi;
       d_step { assert(in_turn(s)); take(pick, mine[s]); upTo[s] = last; pick = 0 } }

  /* takeSteers */
  :: d_step { at[s] == BOUNDARY && !may_write(s) -> rest(s) }
  :: atomic { at[s] == BOUNDARY && may_write(s) -> choose_rows();
       d_step {
         assert(in_turn(s));
         if
         :: cancel -> at[s] = STOPS
#ifdef TAKE_APART
         :: else -> mark_next(s); at[s] = GRABS
#else
         :: else -> take(pick, mine[s]); upTo[s] = last; at[s] = THINKS
#endif
         fi;
         pick = 0 } }

  /* commitToolTurn, markToolStarted, the tool itself, endToolTurn or parkRun */
#ifndef WITHOUT_CALL
  :: atomic { at[s] == THINKS && call == NONE && may_write(s) ->
       if
       :: callWaits = 0
#ifndef ASKS
       :: callWaits = 1
#endif
       fi;
       d_step { assert(in_turn(s)); call = PENDING; callOf = mine[s]; decided = upTo[s]; at[s] = CALLS } }
#endif
  :: d_step { at[s] == CALLS && !may_write(s) -> rest(s) }
#ifdef ASKS
  :: d_step { at[s] == CALLS && may_write(s) -> ask_and_park(s) }
#else
  :: d_step { at[s] == CALLS && may_write(s) -> assert(in_turn(s)); call = STARTED; at[s] = ACTS }
#endif
  :: d_step { at[s] == ACTS -> assert(!acted); acted = 1; at[s] = ACTED }
  :: d_step { at[s] == ACTED && !may_write(s) -> rest(s) }
  :: d_step { at[s] == ACTED && may_write(s) && callWaits -> park(s) }
  :: atomic { at[s] == ACTED && may_write(s) && !callWaits -> choose_rows();
       d_step {
         assert(in_turn(s));
         call = DONE; callOf = 0;
         if
         :: cancel -> at[s] = STOPS
         :: else -> take(pick, mine[s]); upTo[s] = last; at[s] = THINKS
         fi;
         pick = 0 } }

  /* commitAnswer: the answer, and either the steers that extend the run or its end. */
  :: d_step { at[s] == THINKS && !may_write(s) -> rest(s) }
  :: atomic { at[s] == THINKS && may_write(s) -> choose_rows(); choose_to_go_on();
       d_step {
         assert(in_turn(s));
         if
#ifndef CANCEL_UNREAD
         :: cancel -> at[s] = STOPS
#endif
         :: else ->
            say(s);
            end_taken(mine[s], true);
            take(pick, mine[s]);
            if
#ifdef CLOSE_IN_TWO
            :: j == 0 && !SOME(waits) -> at[s] = GRABS
#endif
            :: j > 0 -> tries = 1; from[s] = upTo[s]; upTo[s] = last
            :: else -> close_run(s)
            fi
         fi;
         pick = 0; extendAnsweredRun = 0 } }

  /* endRun: the model failed, or the run has learned that it was asked to stop. */
  :: atomic { at[s] == THINKS && may_write(s) -> choose_to_go_on(); choose_to_keep();
       d_step { assert(in_turn(s)); return_kept(mine[s]); end_taken(mine[s], false); close_cut(s); extendAnsweredRun = 0 } }
  :: d_step { at[s] == THINKS && cancel && mine[s] == openRun -> at[s] = STOPS }
  :: d_step { at[s] == STOPS && !may_write(s) -> rest(s) }
  :: atomic { at[s] == STOPS && may_write(s) -> choose_to_go_on(); choose_to_keep();
       d_step { assert(in_turn(s)); return_kept(mine[s]); end_taken(mine[s], false); close_cut(s); extendAnsweredRun = 0 } }

#ifdef CLAIM_UNLOCKED
  /* Rows that were read as free and waiting are claimed and taken a moment later. */
  :: d_step { at[s] == GRABS ->
       new_run();
       raise_epoch();
       hold(s);
       readFrom = last;
       i = 1;
       do
       :: i < MESSAGES && is_ended(i) -> i++
       :: else -> break
       od;
       state[i] = TAKEN; due[i] = 0; takenBy[i] = openRun;
       append(i);
       i = 0; tries = 1; decided = last; at[s] = READS }
#endif
#ifdef TAKE_APART
  :: d_step { at[s] == GRABS && !may_write(s) -> rest(s) }
  :: d_step { at[s] == GRABS && may_write(s) ->
       i = marked[s]; marked[s] = 0;
       if
       :: i != 0 -> append(i)
       :: else
       fi;
       i = 0; upTo[s] = last; at[s] = THINKS }
#endif
#ifdef CLOSE_IN_TWO
  /* It saw that nothing waits, and now acts accordingly. */
  :: d_step { at[s] == GRABS -> forget_run(mine[s]); free_lane(); rest(s) }
#endif

  /* renewLeases: an expired lease is renewed as long as no other slot has claimed. */
  :: d_step { at[s] > WOKEN && !lease && holder == PROCESS(s) && held[s] == epoch && mine[s] == openRun -> lease = 1 }

  /* The process is asked to stop: handOver of a run, or releaseLane between two runs. */
  :: d_step { at[s] > WOKEN && !calm && may_write(s) ->
       assert(in_turn(s)); free_lane(); handedOver = 1; rest(s) }
  :: d_step { at[s] == WOKEN && !calm ->
       if
       :: holder == PROCESS(s) && openRun == 0 -> free_lane()
       :: else
       fi;
       rest(s) }
  od
}

/* ---- What people send ---------------------------------------------------------------------------------- */

inline store_row() {
  accepted++;
  i = 1;
  do
  :: quiet && i < accepted -> due[i] = 0; i++
  :: else -> break
  od;
  i = 0;
#ifdef WITHOUT_LEDGER
  event[accepted] = (again && accepted > 1 -> event[accepted - 1] : event[accepted - 1] + 1);
  again = 0;
#endif
  state[accepted] = WAITING; due[accepted] = !later;
  if
  :: openRun != 0 && interrupts -> cancel_run()
  :: else
  fi;
  later = 0; quiet = 0; interrupts = 0
}

/* The slot that runs the lane checks for waiting rows before it closes; if the slot is gone, the sweep does. */
#define nobody_looks (openRun == 0 || !lease)

/* acceptItem, and a wake that isn't awaited. */
inline accept() {
  if
  :: nobody_looks && later -> set(timer)
  :: nobody_looks && !later -> set(wake)
  :: else
  fi;
  store_row()
}

/* With a slot free, claimDue takes the lane in the transaction that accepts. */
inline accept_and_claim(s) {
  if
  :: nobody_looks ->
     store_row();
     claim(s);
     if
     :: at[s] == WOKEN || at[s] == IDLE -> rest(s); set(wake)
     :: else
     fi
  :: else -> store_row()
  fi;
  pick = 0; kept = 0
}

/* /stop */
inline cancel_waiting() {
  i = 1;
  do
  :: i <= MESSAGES ->
     if
     :: waits(i) -> state[i] = ENDED; due[i] = 0; gone[EVENT(i)] = 1
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

#define may_stop (!calm || accepted < MESSAGES)

active proctype People() {
end:
  do
  :: atomic { accepted < MESSAGES ->
       if
       :: later = 1; quiet = 1
       :: later = 1
       :: skip
       fi;
       if
       :: interrupts = 1
       :: skip
       fi;
#ifdef WITHOUT_LEDGER
       if
       :: again = 1
       :: skip
       fi;
#endif
       if
       :: d_step { accept() }
       :: at[0] == IDLE && !later -> choose_rows(); choose_to_keep(); d_step { accept_and_claim(0) }
       :: at[1] == IDLE && !later -> choose_rows(); choose_to_keep(); d_step { accept_and_claim(1) }
#if SLOTS == 3
       :: at[2] == IDLE && !later -> choose_rows(); choose_to_keep(); d_step { accept_and_claim(2) }
#endif
       fi }
  /*
   * /stop. One may have a right to stop the run, or to take back what waits, or both. Nobody does so in
   * the end: what is stuck must not be freed by that.
   */
  :: d_step { may_stop && SOME(waits) -> cancel_waiting() }
  :: d_step { may_stop && openRun != 0 && !cancel -> cancel_run() }
  :: d_step { may_stop && SOME(waits) && openRun != 0 && !cancel -> cancel_waiting(); cancel_run() }
  od
}

#ifdef ASKS
#ifdef PRESS_BLIND
#define is_open (question != NONE)
#else
#define is_open (question == ASKED)
#endif

/* decideCall and expireCall, by any number of people and processes: by compare and set, under the lane's lock. */
active proctype Deciders() {
end:
  do
  :: d_step { is_open && callOf != 0 && lease -> question = APPROVED; allowed = 1; unpark() }
  :: d_step { is_open && callOf != 0 && lease -> decide_no; unpark() }
  :: d_step { question == ASKED && !lease && parked -> decide_no; unpark() }
  od
}
#endif

/* ---- Time ------------------------------------------------------------------------------------------------ */

active proctype Clock() {
end:
  do
  :: d_step { waits(1) && !due[1] -> due[1] = 1 }
  :: d_step { waits(2) && !due[2] -> due[2] = 1 }
#if MESSAGES > 2
  :: d_step { waits(3) && !due[3] -> due[3] = 1 }
#endif
#if MESSAGES > 3
  :: d_step { waits(4) && !due[4] -> due[4] = 1 }
#endif
#ifndef LEASE_FOR_EVER
  :: d_step { lease && !parked && (!calm || !ANY(holds, epoch)) -> lease = 0 }
#ifndef PARKED_FOR_EVER
  :: d_step { lease && parked -> lease = 0 }            /* the wait expires */
#endif
#endif
#ifndef NOBODY_ANSWERS
  :: d_step { callWaits && call == STARTED && !cancel -> settle_call() }
#endif
  /* An earlier timer would only be set again: `busy` says when the lease ends, `armed` when the head is due. */
  :: d_step { timer && !lease && (openRun != 0 || !SOME(waits) || head_is_due) -> timer = 0; wake = 1 }
  :: timeout -> assert(settled); break            /* nothing moves any more: nothing may be left */
  od
}

/*
 * readSweep, once the world is calm: before that, a slot looks at any time anyway. The real sweep also finds a lane
 * whose head isn't due but a later row is; the claim then returns `armed`, and nothing changes.
 */
#ifndef WITHOUT_SWEEP
active proctype Sweeper() {
end:
  do
  :: d_step { calm && !wake && !lease && (openRun != 0 || head_is_due) -> wake = 1 }
  od
}
#endif

/* ---- What goes wrong --------------------------------------------------------------------------------------- */

/* A step that throws leaves everything as it is; a kill does so for the entire process. */
inline kill(s) {
  rest(s);
  holder = (holder == PROCESS(s) -> DEAD : holder)
}

active proctype Faults() {
end:
  do
  :: !calm -> calm = 1
  :: d_step { !calm && at[0] != IDLE -> rest(0) }
  :: d_step { !calm && at[1] != IDLE -> rest(1) }
#if SLOTS == 3
  :: d_step { !calm && at[2] != IDLE -> rest(2) }
#endif
#ifdef ONE_PROCESS
  :: d_step { !calm && (at[0] != IDLE || at[1] != IDLE || holder == 1) -> kill(0); kill(1) }
#else
  :: d_step { !calm && (at[0] != IDLE || holder == PROCESS(0)) -> kill(0) }
  :: d_step { !calm && (at[1] != IDLE || holder == PROCESS(1)) -> kill(1) }
#if SLOTS == 3
  :: d_step { !calm && (at[2] != IDLE || holder == PROCESS(2)) -> kill(2) }
#endif
#endif
  od
}

ltl settles { (<> calm) -> (<> [] settled) }
