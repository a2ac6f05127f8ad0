INSERT INTO faults (place, fault, used) VALUES (?, ?, 1)
ON CONFLICT (place, fault) DO UPDATE SET used = used + 1;
