// A worker on the SDK.
//   ambit worker create demo --agent guide > guide.creds
//   NATS_URL=nats://localhost:4222 AMBIT_CREDS=guide.creds AMBIT_AGENT=guide node examples/worker-sdk/dist/worker.js
// With AMBIT_WORKSPACE=./work its agent gets read, write, edit, ls, glob, grep, exec and process in a folder a session.
import { connect, type Run } from '@ambit/worker';
import { workspace } from '@ambit/worker/workspace';
import { literalModel } from './literal-model.js';

async function follow(run: Run): Promise<void> {
  for await (const turn of run.turns()) {
    const said = literalModel(turn.messages);
    for (const block of said.content) if (typeof block.text === 'string') run.output(block.text);
    await turn.say(said);
  }
}

const ambit = await connect();
process.stdout.write(`worker ${ambit.workerId} takes the runs of ${process.env.AMBIT_AGENT ?? 'guide'}\n`);
await ambit.work(process.env.AMBIT_AGENT ?? 'guide', follow, {
  concurrency: Number(process.env.AMBIT_CONCURRENCY ?? 4),
  tools: process.env.AMBIT_WORKSPACE === undefined ? [] : workspace({ root: process.env.AMBIT_WORKSPACE }),
});
