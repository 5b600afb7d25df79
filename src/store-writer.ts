/** SQLite's writer thread starts here. */
import { storeProgram } from './steps.ts';
import { serveWriter } from './store/sqlite/writer-thread.ts';

serveWriter(storeProgram);
