PRAGMA application_id = 0;
PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE batches (
	name VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (name, campaign)
);
INSERT INTO "batches" VALUES('20210301T000000Z-000001-20f0da5e5fe967e0','words',1,'20f0da5e5fe967e0','20210301T000000Z','made');
INSERT INTO "batches" VALUES('20210303T000000Z-000001-20f0da5e5fe967e0','words',1,'20f0da5e5fe967e0','20210303T000000Z','made');
INSERT INTO "batches" VALUES('20210307T000000Z-000001-20f0da5e5fe967e0','words',1,'20f0da5e5fe967e0','20210307T000000Z','made');
INSERT INTO "batches" VALUES('20210311T000000Z-000001-20f0da5e5fe967e0','words',1,'20f0da5e5fe967e0','20210311T000000Z','dissolved');
CREATE TABLE deleted (
	campaign VARCHAR NOT NULL, 
	folder VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	complete BOOLEAN NOT NULL, 
	PRIMARY KEY (campaign, folder, batch)
);
CREATE TABLE hops (
	campaign VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	hop VARCHAR NOT NULL, 
	counts TEXT NOT NULL, 
	folder VARCHAR, 
	finished_at VARCHAR NOT NULL, 
	PRIMARY KEY (campaign, batch, hop)
);
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-20f0da5e5fe967e0','shuffle','{"accepted": 210, "hop": "shuffle", "received": 210, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}, "reports": {"accepted": 138, "received": 138, "rejected": {}}}}',NULL,'2026-11-22T20:29:54+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-20f0da5e5fe967e0','release','{"accepted": 72, "hop": "release", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-22T20:29:56+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-20f0da5e5fe967e0','discover','{"accepted": 72, "hop": "discover", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-22T20:29:57+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-20f0da5e5fe967e0','analyze','{"accepted": 78, "hop": "analyze", "received": 138, "rejected": {"wrong_campaign": 60}, "streams": {"reports": {"accepted": 78, "received": 138, "rejected": {"wrong_campaign": 60}}}}',NULL,'2026-11-22T20:29:59+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-20f0da5e5fe967e0','shuffle','{"accepted": 69, "hop": "shuffle", "received": 69, "rejected": {}, "streams": {"reports": {"accepted": 69, "received": 69, "rejected": {}}}}',NULL,'2026-11-22T20:30:01+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-20f0da5e5fe967e0','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:30:01+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-20f0da5e5fe967e0','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:30:01+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-20f0da5e5fe967e0','analyze','{"accepted": 69, "hop": "analyze", "received": 69, "rejected": {}, "streams": {"reports": {"accepted": 69, "received": 69, "rejected": {}}}}',NULL,'2026-11-22T20:30:02+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-20f0da5e5fe967e0','shuffle','{"accepted": 63, "hop": "shuffle", "received": 63, "rejected": {}, "streams": {"reports": {"accepted": 63, "received": 63, "rejected": {}}}}',NULL,'2026-11-22T20:30:03+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-20f0da5e5fe967e0','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:30:03+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-20f0da5e5fe967e0','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:30:03+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-20f0da5e5fe967e0','analyze','{"accepted": 0, "hop": "analyze", "received": 63, "rejected": {"below_minimum": 3, "wrong_campaign": 60}, "streams": {"reports": {"accepted": 0, "received": 63, "rejected": {"below_minimum": 3, "wrong_campaign": 60}}}}',NULL,'2026-11-22T20:30:04+00:00');
CREATE TABLE hushcount_state (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "hushcount_state" VALUES(4);
CREATE TABLE manifests (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	collector VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	refused TEXT NOT NULL, 
	damaged INTEGER NOT NULL, 
	PRIMARY KEY (path)
);
INSERT INTO "manifests" VALUES('words/000001-20f0da5e5fe967e0/20210301T000000Z/one.manifest.json','words',1,'20f0da5e5fe967e0','20210301T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-20f0da5e5fe967e0/20210301T000000Z/two.manifest.json','words',1,'20f0da5e5fe967e0','20210301T000000Z',86400,'two','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-20f0da5e5fe967e0/20210302T000000Z/one.manifest.json','words',1,'20f0da5e5fe967e0','20210302T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-20f0da5e5fe967e0/20210303T000000Z/one.manifest.json','words',1,'20f0da5e5fe967e0','20210303T000000Z',86400,'one','none','{}',0);
INSERT INTO "manifests" VALUES('words/000001-20f0da5e5fe967e0/20210307T000000Z/one.manifest.json','words',1,'20f0da5e5fe967e0','20210307T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-20f0da5e5fe967e0/20210311T000000Z/one.manifest.json','words',1,'20f0da5e5fe967e0','20210311T000000Z',86400,'one','client-token','{}',0);
CREATE TABLE runs (
	token BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	at VARCHAR
);
INSERT INTO "runs" VALUES(1,'dc39f19bfb705582','2026-11-22T20:29:52.276852+00:00');
CREATE TABLE segments (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	records BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	digest VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	batch VARCHAR, 
	reason VARCHAR, 
	PRIMARY KEY (path)
);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210301T000000Z/reports/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210301T000000Z','reports',72,7696,'bc5ce503aae41a1599ad1d958d0f3aa34b95e4fed0227ca217fc33739546f897','client-token','batched','20210301T000000Z-000001-20f0da5e5fe967e0',NULL);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210301T000000Z/discovery/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210301T000000Z','discovery',72,15832,'44c2ede39a14f065b8d5a9caf43bd9d4d7b8b5964c866fd0cbd2425c8eef1666','client-token','batched','20210301T000000Z-000001-20f0da5e5fe967e0',NULL);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210301T000000Z/reports/two-000000.blocks','words',1,'20f0da5e5fe967e0','20210301T000000Z','reports',66,7066,'200bce6a4afcf1dffe117419347c55c4ef5a78a21e5db27f84c8e9828bcbc5ad','client-token','batched','20210301T000000Z-000001-20f0da5e5fe967e0',NULL);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210302T000000Z/reports/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210302T000000Z','reports',9,1081,'578b1f4d40bb0025de9d38a075ed84df0608bd8f0c4382c8e80ef91ed08d6af2','client-token','batched','20210303T000000Z-000001-20f0da5e5fe967e0',NULL);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210302T000000Z/discovery/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210302T000000Z','discovery',9,2098,'2c71e61048ca0b3cf843d6b128596df08e52f6fd2868ca25cc2381ef9853c7f4','client-token','too_late',NULL,'grace ended before 20210307T000000Z closed');
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210303T000000Z/reports/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210303T000000Z','reports',60,6436,'1eb763dfb5e16f34813285c0c41d263407bcb33d280acbe499150d61d293b618','none','batched','20210303T000000Z-000001-20f0da5e5fe967e0',NULL);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210307T000000Z/reports/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210307T000000Z','reports',63,6751,'12ee1bbcab13710c3caeff8e97fe9a79c58682145c5d917fe16afcac6dcc6a21','client-token','batched','20210307T000000Z-000001-20f0da5e5fe967e0',NULL);
INSERT INTO "segments" VALUES('words/000001-20f0da5e5fe967e0/20210311T000000Z/reports/one-000000.blocks','words',1,'20f0da5e5fe967e0','20210311T000000Z','reports',55,5911,'5c6f493a71b4435ce915a60fc20c7dfb89de3acb337e13c6ff2d829479aebeb3','client-token','quarantined',NULL,'fails its digest');
CREATE TABLE windows (
	campaign VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	PRIMARY KEY (campaign, window)
);
INSERT INTO "windows" VALUES('words','20210301T000000Z','2026-11-22T20:29:52.276852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210302T000000Z','2026-11-22T20:29:52.276852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210303T000000Z','2026-11-22T20:29:52.276852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210307T000000Z','2026-11-22T20:29:52.276852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210311T000000Z','2026-11-22T20:29:52.276852+00:00',86400);
COMMIT;
