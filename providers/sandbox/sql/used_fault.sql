SELECT used FROM faults WHERE place = ? AND fault = ?;
