import { readSnapshot } from '@ambit/capability';
import type { Agent } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { instructionsFor, speaksOfCatalogue } from './domain/instructions.js';
import { snapshots } from './snapshot.repository.js';
import type { Reader } from './transactions.repository.js';

/** The instructions of an agent, as the snapshot of a run has them. */
@Injectable()
export class Instructions {
  async of(db: Reader, { instructions }: Pick<Agent, 'instructions'>, fingerprint: string): Promise<string> {
    if (!speaksOfCatalogue(instructions)) return instructions;
    const row = await snapshots.find(db, fingerprint);
    if (row === undefined) throw new Error(`the snapshot ${fingerprint} of a run is not stored`);
    return instructionsFor(instructions, readSnapshot(row.text, fingerprint));
  }
}
