/** All steps of the store and all chat commands. The SQLite writer thread runs them from these lists. */
import { commandSteps } from './commands/list.ts';
import { decideOnPage, expireQuestion } from './store/access/decide-approval.ts';
import { approveOnConsole, revokeOnConsole } from './store/access/operate-access.ts';
import { dismissNotice, raiseAlert, resolveAlert } from './store/alerts/note-alert.ts';
import type { StoreCommand, StoreProgram, StoreSetup } from './store/base/command.ts';
import { steerChild, stopChild } from './store/children/operate-child.ts';
import { spawnChild } from './store/children/spawn-child.ts';
import { claimDelivery, recordDelivery } from './store/delivery/claim-delivery.ts';
import { endPartsAfterRestore } from './store/delivery/end-parts-after-restore.ts';
import { dropPart, retryPart } from './store/delivery/operator-actions.ts';
import { storeToolParts } from './store/delivery/post-part.ts';
import { queueAlertMessage } from './store/delivery/queue-alert-message.ts';
import { adoptPreview, recordPreview } from './store/delivery/record-preview.ts';
import { acceptBatch } from './store/intake/accept-batch.ts';
import { cancelSession } from './store/intake/cancel-session.ts';
import { enqueueItems } from './store/intake/enqueue-items.ts';
import { expireMedia } from './store/intake/expire-media.ts';
import { storeFetched } from './store/intake/fetching.ts';
import { cancelItem, cancelItems } from './store/items/cancel-item.ts';
import { editItem } from './store/items/edit-item.ts';
import { promoteItem } from './store/items/promote-item.ts';
import { storeWaitingNotices } from './store/items/waiting-notices.ts';
import { claimLane } from './store/lanes/claim-lane.ts';
import { commitAnswer, endRun } from './store/lanes/commit-answer.ts';
import { commitSummary } from './store/lanes/commit-summary.ts';
import {
  commitToolTurn,
  endToolTurn,
  markToolStarted,
  saveImage,
  storeNotice,
  storeToolResults,
} from './store/lanes/commit-turn.ts';
import { handOver, releaseFailedRun, releaseLane, renewLeases, resumePaused } from './store/lanes/leases.ts';
import { markUnsendable } from './store/lanes/mark-unsendable.ts';
import { parkForBudget } from './store/lanes/park-for-budget.ts';
import { parkRun, settleParkedCall } from './store/lanes/park-run.ts';
import { savePromptSizes } from './store/lanes/prompt-sizes.ts';
import { recoverRun } from './store/lanes/recover-run.ts';
import { setLaneMode } from './store/lanes/set-lane-mode.ts';
import { takeSteers } from './store/lanes/steer.ts';
import { closeBundles, makeDue } from './store/lanes/sweep.ts';
import { sweepChild } from './store/lanes/sweep-child.ts';
import { removeLink } from './store/links/operate-links.ts';
import { deleteOldBudgets, endBudgetAlerts } from './store/money/budgets.ts';
import { reserveCall } from './store/money/reserve-call.ts';
import { claimAccount, releaseAccount, rememberCommands } from './store/processes/accounts.ts';
import { addProcess, voidProcesses } from './store/processes/process-records.ts';
import { forgetLeftFiles } from './store/rows/left-files.ts';
import { lockOut } from './store/sign-ins/lockouts.ts';
import { endSignIns, openSignIn, touchSignIn } from './store/sign-ins/sign-ins.ts';
import { resumeWithRoom } from './store/waits/budget-waits.ts';
import type { ChatTexts } from './texts/chat-texts.ts';

// The input type is `never` because the list forgets what each step takes; Store.write knows it.
const steps: readonly StoreCommand<never, unknown>[] = [
  acceptBatch,
  enqueueItems,
  approveOnConsole,
  addProcess,
  cancelItem,
  cancelItems,
  cancelSession,
  claimAccount,
  claimDelivery,
  claimLane,
  closeBundles,
  commitAnswer,
  commitSummary,
  decideOnPage,
  expireQuestion,
  commitToolTurn,
  deleteOldBudgets,
  dismissNotice,
  endPartsAfterRestore,
  dropPart,
  editItem,
  voidProcesses,
  resolveAlert,
  reserveCall,
  resumeWithRoom,
  endBudgetAlerts,
  endRun,
  endSignIns,
  endToolTurn,
  handOver,
  resumePaused,
  releaseFailedRun,
  lockOut,
  makeDue,
  markToolStarted,
  markUnsendable,
  openSignIn,
  parkForBudget,
  parkRun,
  storeToolParts,
  promoteItem,
  raiseAlert,
  recordPreview,
  adoptPreview,
  recoverRun,
  releaseAccount,
  releaseLane,
  rememberCommands,
  removeLink,
  renewLeases,
  retryPart,
  revokeOnConsole,
  saveImage,
  savePromptSizes,
  setLaneMode,
  storeNotice,
  recordDelivery,
  settleParkedCall,
  spawnChild,
  steerChild,
  stopChild,
  expireMedia,
  forgetLeftFiles,
  storeFetched,
  storeToolResults,
  takeSteers,
  queueAlertMessage,
  storeWaitingNotices,
  sweepChild,
  touchSignIn,
];

/** The program that runs inside the store's transactions. */
export const storeProgram: StoreProgram = { steps, chatCommands: commandSteps };

/** Returns the set-up to pass to `openStore`. */
export function storeSetup(texts: ChatTexts): StoreSetup {
  return { ...storeProgram, texts, writer: new URL('./store-writer.ts', import.meta.url) };
}
